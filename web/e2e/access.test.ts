// Every place of the page, in light and in dark, against the rules that a machine can check.

import axe from "axe-core";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Device, launch, reads } from "./browser.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

let browser: Browser;
let host: Host;
let me: Device;

beforeAll(async () => {
  browser = await launch();
  host = await Host.start({ script: script() });
  me = await Device.open(browser, host);
});

afterAll(async () => {
  await me.close();
  await browser.close();
  await host.stop();
});

async function check(): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await me.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await me.page.evaluate(axe.source);
    const { violations } = await me.page.evaluate(
      (tags) => (globalThis as unknown as { axe: typeof axe }).axe.run({ runOnly: tags }),
      ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    );
    const found = violations.map(
      ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map((node) => node.html).join(" ")}`,
    );
    expect(found).toEqual([]);
  }
}

describe("no machine-checkable barrier", () => {
  it("on the first visit", async () => {
    await reads(me.page.locator(".first"), "Connect an agent");
    await check();
  });

  it("in the settings", async () => {
    await me.page.goto(`${host.url}#/settings`);
    await me.page.locator(".settings").waitFor();
    await check();
  });

  it("in a session with a card", async () => {
    await me.say("ask two things");
    await me.card.waitFor();
    await check();
  });

  it("in the inbox with a card, edited, and in the shortcuts", async () => {
    await me.page.goto(`${host.url}#/`);
    await me.page.locator(".row-needs").click();
    await me.option("SQLite").click();
    await reads(me.card, "What shall it be called?");
    await check();
    await me.page.locator(".rail-link").first().focus();
    await me.page.keyboard.press("?");
    await me.page.locator("dialog").waitFor();
    await check();
    await me.page.keyboard.press("Escape");
  });

  it("in a session with everything unfolded", async () => {
    await me.say("ask in a second");
    await me.said("The other work is done.").waitFor();
    await me.act("submit").click();
    await me.said("So it is Postgres").waitFor();
    await me.unfold();
    await me.ask("answered").locator('[data-action="view"]').click();
    await me.page.locator(".record").waitFor();
    await check();
  });

  it("on a narrow screen", async () => {
    await me.page.setViewportSize({ width: 390, height: 800 });
    await me.page.goto(`${host.url}#/`);
    await me.page.locator("[data-row]").first().click();
    await me.card.waitFor();
    await check();
    await me.picture("narrow-dark");
  });
});
