// Narrow screens: nothing a person needs stands outside the screen, in any place of the page.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Device, launch } from "./browser.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

let browser: Browser;
let host: Host;

beforeAll(async () => {
  browser = await launch();
  host = await Host.start({ script: script() });
});

afterAll(async () => {
  await browser.close();
  await host.stop();
});

/** What reaches past the right edge, but for what is drawn nowhere and what scrolls in a box. */
const outside = (device: Device): Promise<string[]> =>
  device.page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("body *")]
      .filter((e) => {
        const box = e.getBoundingClientRect();
        if (box.width < 2 || box.height < 2 || box.right <= innerWidth + 1) return false;
        for (let up = e.parentElement; up; up = up.parentElement) {
          if (["auto", "scroll"].includes(getComputedStyle(up).overflowX) && up.tagName === "PRE")
            return false;
        }
        return true;
      })
      .map((e) => `${e.tagName}.${e.getAttribute("class") ?? ""}`),
  );

for (const width of [320, 390]) {
  it(`fits ${width} px: the session with its card, the inbox, the card, the lists`, async () => {
    const me = await Device.open(browser, host, (page) =>
      page.setViewportSize({ width, height: 740 }),
    );
    try {
      await me.say(
        "ask in a while, in a session with a title that is longer than the screen is wide",
      );
      await me.card.waitFor();
      await me.picture(`narrow-${width}-session`);
      expect(await outside(me)).toEqual([]);
      for (const place of ["inbox", "sessions", "settings"]) {
        await me.page.goto(`${new URL(me.page.url()).origin}/#/${place}`);
        await me.page.locator(".rail").waitFor();
        await me.page.waitForFunction(() => document.querySelector("main")?.textContent !== "");
        expect(await outside(me), place).toEqual([]);
      }
      await me.page.goto(`${new URL(me.page.url()).origin}/#/inbox`);
      await me.page.locator("[data-list] [data-row]").first().click();
      await me.card.waitFor();
      expect(await outside(me), "the card alone").toEqual([]);
      expect(me.faults).toEqual([]);
    } finally {
      await me.close();
    }
  });
}
