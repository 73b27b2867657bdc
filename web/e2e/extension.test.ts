// The extension in Chromium against the real host: pairing, popup and panel, badge, notifications
// and their buttons, and a worker that the browser ends.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Device, launch, reads } from "./browser.ts";
import {
  badgeOf,
  dismissNotice,
  Extended,
  listenForNotices,
  noticesMade,
  noticesShown,
  picture,
  pressButton,
} from "./extension.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

let extended: Extended;
let host: Host;
let browser: Browser;
let desk: Device;
let options: Page;

beforeAll(async () => {
  extended = await Extended.open();
  browser = await launch();
});

afterAll(async () => {
  await desk?.close();
  await browser?.close();
  await extended?.close();
  await host?.stop();
});

async function pairWith(page: Page, address: string, code: string): Promise<void> {
  await page.getByLabel("Address of the host").fill(address);
  await page.getByLabel("Login link or code").fill(code);
  await page.getByRole("button", { name: "Pair", exact: true }).click();
}

describe("the extension", () => {
  it("is not let in by a host that does not list it, and says how it would be", async () => {
    host = await Host.start({ script: script() });
    options = await extended.page("options.html");
    expect(await options.locator("[data-origin]").textContent()).toBe(
      `meanwhile serve --origin ${extended.origin}`,
    );
    await pairWith(options, host.url, await host.login());
    await options.getByText("does not list this extension's origin yet").waitFor();
    await picture(options, "extension-options");
    expect(await badgeOf(options)).toBe("!");
    await host.stop();
  });

  it("pairs by a single-use code, once", async () => {
    host = await Host.start({ script: script(), args: ["--origin", extended.origin] });
    const link = await host.login();
    await pairWith(options, "http://127.0.0.1:1", link); // the link's own address counts
    await options.getByText(`Paired with ${host.url.replace(/\/$/, "")}`).waitFor();
    await expect.poll(() => badgeOf(options)).toBe("");
    await options.getByRole("button", { name: "Forget this host" }).click();
    await pairWith(options, host.url, link);
    await options.getByText("That code has been used already").waitFor();
    await pairWith(options, host.url, await host.login());
    await options.locator("[data-paired]").waitFor();
  });

  it("counts what needs the person, and answers in the popup", async () => {
    desk = await Device.open(browser, host);
    const popup = await extended.page("view.html?popup");
    await popup.getByText("Nothing needs you").or(popup.locator(".first")).waitFor();
    await desk.say("ask in a while");
    await popup.locator(".row-needs").waitFor();
    await expect.poll(() => badgeOf(popup)).toBe("1");
    await picture(popup, "extension-popup");
    await popup.locator(".row-needs").click();
    await popup.getByText("then the agent carries on").waitFor();
    await picture(popup, "extension-popup-card");
    await popup.locator(".opt", { hasText: "SQLite" }).locator("input").click();
    await popup.getByText("Waiting for you").waitFor();
    await popup.close();
    // The draft is where the panel finds it, too.
    const panel = await extended.page("view.html");
    await panel.locator(".row-needs").click();
    expect(await panel.locator(".opt", { hasText: "SQLite" }).locator("input").isChecked()).toBe(
      true,
    );
    await picture(panel, "extension-panel");
    await panel.locator('[data-act="submit"]').click();
    await desk.said("You chose SQLite").waitFor();
    await expect.poll(() => badgeOf(panel)).toBe("");
    await panel.close();
  });

  it("notifies once, with a button that says what it sends, and takes it back", async () => {
    const worker = await extended.worker();
    await listenForNotices(worker);
    await desk.say("ask in a while");
    await expect.poll(async () => (await noticesShown(options)).length).toBe(1);
    const [key = ""] = await noticesShown(options);
    const notice = (await noticesMade(worker))[key];
    expect(notice?.buttons?.map((button) => button.title)).toEqual(["Send: Postgres", "Open"]);
    expect(notice?.message).toBe("Which store should sessions use?");
    await pressButton(worker, key, 0);
    await desk.said("You chose Postgres").waitFor();
    await expect.poll(() => noticesShown(options)).toEqual([]);
    await expect.poll(() => badgeOf(options)).toBe("");
  });

  it("offers no sending where one button cannot say it all", async () => {
    const worker = await extended.worker();
    await desk.say("two things");
    await expect.poll(async () => (await noticesShown(options)).length).toBe(1);
    const [key = ""] = await noticesShown(options);
    expect((await noticesMade(worker))[key]?.buttons).toBeUndefined();
    await desk.option("SQLite").click();
    await reads(desk.card, "What shall it be called?");
    await desk.own.fill("sessions");
    await desk.own.press("Control+Enter");
    await expect.poll(() => noticesShown(options)).toEqual([]);
  });

  it("watches without a claim: the host's clock runs on, and the button still answers late", async () => {
    // Nobody else looks: the desk is closed, so only the watcher is there when the time is up.
    const worker = await extended.worker();
    await desk.say("ask in a second");
    await desk.page.goto("about:blank");
    await expect.poll(async () => (await noticesShown(options)).length).toBe(1);
    const [key = ""] = await noticesShown(options);
    await expect.poll(() => badgeOf(options)).toBe("1");
    await expect.poll(() => badgeOf(options)).toBe("");
    const device = await Device.open(browser, host);
    await device.page.locator(".row-late").waitFor();
    expect(await noticesShown(options)).toEqual([key]);
    await device.openFirstSession();
    await pressButton(worker, key, 0);
    await device.said("So it is Postgres").waitFor();
    await desk.close();
    desk = device;
  });

  it("comes back after the browser ended its worker, and tells nothing twice", async () => {
    await desk.say("never mind the time");
    await expect.poll(() => badgeOf(options)).toBe("1");
    await expect.poll(async () => (await noticesShown(options)).length).toBe(1);
    const [first = ""] = await noticesShown(options);
    await dismissNotice(options, first);
    await extended.killWorker(options);
    await desk.say("ask in a while");
    // Nothing but the alarm wakes it.
    await expect.poll(() => badgeOf(options), { timeout: 60_000, interval: 500 }).toBe("2");
    await expect.poll(async () => (await noticesShown(options)).length).toBe(1);
    expect(await noticesShown(options)).not.toContain(first);
  });

  it("says that it is offline when the host is gone, and forgets a token that was taken away", async () => {
    const panel = await extended.page("view.html");
    await panel.locator(".row-needs").first().waitFor();
    await host.kill();
    await reads(panel.locator("[data-offline]"), "Offline. Your text is safe on this device.");
    await host.up();
    await expect.poll(() => panel.locator("[data-offline]").count()).toBe(0);
    await options.getByRole("button", { name: "Forget this host" }).click();
    await panel.getByText("Not paired with a host yet.").waitFor();
    await expect.poll(() => badgeOf(options)).toBe("!");
    await panel.close();
  });
});
