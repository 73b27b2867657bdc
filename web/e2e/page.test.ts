// The page around the questions: signing in, what a person cannot be tricked or hurried into, and
// what a browser that refuses things does to it.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Device, launch, reads } from "./browser.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

let browser: Browser;
let host: Host;
let devices: Device[] = [];

beforeAll(async () => {
  browser = await launch();
  host = await Host.start({ script: script() });
});

afterAll(async () => {
  await browser.close();
  await host.stop();
});

afterEach(async (context) => {
  if (context.task.result?.state === "fail") {
    for (const [i, device] of devices.entries()) {
      await device.picture(`failed-${context.task.name.replace(/\W+/g, "-")}-${i}`);
    }
  }
  const faults = devices.flatMap((device) => device.faults);
  for (const device of devices) await device.close();
  devices = [];
  expect(faults).toEqual([]);
});

async function device(before?: Parameters<typeof Device.open>[2]): Promise<Device> {
  const opened = await Device.open(browser, host, before);
  devices.push(opened);
  return opened;
}

describe("signing in", () => {
  it("uses the code once, takes it out of the address, and puts the token in none", async () => {
    const urls: string[] = [];
    const me = await device(async (page) => {
      page.on("request", (request) => urls.push(request.url()));
      page.on("websocket", (socket) => urls.push(socket.url()));
    });
    expect(new URL(me.page.url()).hash).not.toContain("code");
    const token = await me.page.evaluate(() => localStorage.getItem("meanwhile/token"));
    expect(token).toBeTruthy();
    expect(urls.some((url) => url.endsWith("/rpc"))).toBe(true);
    for (const url of urls) expect(url).not.toContain(token);
    await me.page.reload();
    await me.page.locator(".rail").waitFor();
  });

  it("asks again when a link was used before", async () => {
    const link = await host.login();
    const context = await browser.newContext({ locale: "en" });
    const first = await context.newPage();
    await first.goto(link);
    await first.locator(".rail").waitFor();
    const other = await browser.newContext({ locale: "en" });
    const second = await other.newPage();
    await second.goto(link);
    await second.getByText("That link has been used already").waitFor();
    await context.close();
    await other.close();
  });

  it("comes back to the sign-in page when the token is taken away", async () => {
    const me = await device();
    await me.page.goto(`${host.url}#/settings`);
    await me.page.getByRole("button", { name: "Sign out" }).click();
    await me.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await me.page.evaluate(() => localStorage.setItem("meanwhile/token", "not a token"));
    await me.page.reload();
    await me.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await me.page.evaluate(() => localStorage.getItem("meanwhile/token"))).toBeNull();
    // The new link is opened in the same tab: only the part after the # differs.
    await me.page.goto(await host.login());
    await me.page.locator(".rail").waitFor();
    expect(me.page.url()).not.toContain("code");
  });
});

describe("a card that arrives", () => {
  it("takes neither the place, the focus nor the keys of someone who writes", async () => {
    const me = await device();
    await me.say("hello");
    await me.said("Noted: hello").waitFor();
    const composer = me.page.locator(".composer textarea");
    await composer.fill("ask in a while");
    await composer.press("Enter");
    await composer.pressSequentially("hxr1 ");
    await me.page.locator(".slip-asks").waitFor();
    await composer.pressSequentially("hxr1]");
    expect(await composer.inputValue()).toBe("hxr1 hxr1]");
    expect(await me.card.count()).toBe(0);
    await me.page.locator(".slip-asks").getByRole("button", { name: "Open" }).click();
    await reads(me.line, /then the agent carries on/);
    await me.act("submit").click();
    await me.said("You chose Postgres").waitFor();
  });

  it("is in the inbox, with the count in the title, and opens from there by keys", async () => {
    const me = await device();
    await me.say("ask in a while");
    await me.card.waitFor();
    await me.page.goto(`${host.url}#/`);
    const row = me.page.locator(".row-needs");
    await reads(row, "Which store should sessions use?");
    expect(await me.page.title()).toBe("(1) Meanwhile");
    await me.page.keyboard.press("j");
    await me.page.keyboard.press("Enter");
    await me.card.waitFor();
    await me.option("Postgres").focus();
    await me.page.keyboard.press("ArrowDown");
    await reads(me.line, /^Paused/);
    await me.page.keyboard.press("2");
    await reads(me.line, "Waiting for you");
    expect(await me.option("SQLite").isChecked()).toBe(true);
    await me.page.keyboard.press("Control+Enter");
    await me.page.locator(".row-answered").waitFor();
    await me.picture("inbox-answered");
  });

  it("takes a double click on an option for one choice, also across a page change", async () => {
    const me = await device();
    await me.say("ask two things");
    await me.option("SQLite").dblclick();
    await reads(me.card, "What shall it be called?");
    await me.card.getByLabel("Previous question").click({ delay: 450 });
    await reads(me.card, "Which store should sessions use?");
    expect(await me.option("SQLite").isChecked()).toBe(true);
    await me.page.waitForTimeout(450);
    await me.act("submit").click();
    await reads(me.card, "What shall it be called?");
    await reads(me.card, "Answer or skip this one, then send.");
    await me.page.waitForTimeout(450);
    await me.act("skip").click();
    await me.act("submit").click();
    await me.said("You chose SQLite.").waitFor();
  });
});

describe("a card that follows another", () => {
  /** Two questions, the first on show in the inbox with focus in it. */
  async function two(): Promise<Device> {
    const me = await device();
    for (let i = 0; i < 2; i++) {
      await me.say("ask never mind the time");
      await me.card.waitFor();
    }
    await me.page.goto(`${host.url}#/`);
    await me.page.locator(".row-needs").nth(1).waitFor();
    await me.page.locator(".row-needs").first().click();
    await me.option("Postgres").focus();
    return me;
  }

  async function answersTheOther(me: Device): Promise<void> {
    await me.page.waitForTimeout(800);
    expect(await me.page.locator(".row-needs").count()).toBe(1);
    await me.page.locator(".row-needs").click();
    await me.act("submit").click();
    await me.page.locator(".row-needs").waitFor({ state: "detached" });
  }

  it("is not answered by the second click on the button of the one before", async () => {
    const me = await two();
    const box = await me.act("submit").boundingBox();
    if (!box) throw new Error("no button");
    const at: [number, number] = [box.x + box.width / 2, box.y + box.height / 2];
    await me.page.mouse.click(...at);
    await me.page.waitForFunction(() => !document.querySelector("[data-act=submit]:disabled"));
    await me.page.mouse.click(...at);
    await answersTheOther(me);
  });

  it("is not answered by keys that are held down or pressed twice", async () => {
    const me = await two();
    await me.page.keyboard.down("Control");
    for (let i = 0; i < 10; i++) {
      await me.page.keyboard.down("Enter");
      await me.page.waitForTimeout(40);
    }
    await me.page.keyboard.up("Enter");
    await me.page.keyboard.up("Control");
    await answersTheOther(me);
  });
});

describe("words that are no answer yet", () => {
  it("are kept when their place is left, over a reload, and under a card", async () => {
    const me = await device();
    await me.say("hello");
    await me.said("Noted: hello").waitFor();
    const composer = me.page.locator(".composer textarea");
    await composer.fill("half a message");
    await me.page.locator("[data-new]").fill("a whole new thing");
    await me.page.locator(".rail-link").nth(2).click();
    await me.page.locator(".settings").waitFor();
    await me.page.goBack();
    expect(await composer.inputValue()).toBe("half a message");
    await me.page.reload();
    await composer.waitFor();
    expect(await composer.inputValue()).toBe("half a message");
    expect(await me.page.locator("[data-new]").inputValue()).toBe("a whole new thing");
    await composer.fill("ask never mind the time");
    await composer.press("Enter");
    await me.page.locator(".slip-asks").waitFor();
    expect(await composer.inputValue()).toBe("");
    await composer.fill("another half");
    await me.page.locator(".slip-asks").getByRole("button", { name: "Open" }).click();
    await me.act("submit").click();
    await composer.waitFor();
    expect(await composer.inputValue()).toBe("another half");
  });
});

describe("the sheet of shortcuts", () => {
  it("takes Escape for itself", async () => {
    const me = await device();
    await me.say("hello");
    await me.said("Noted: hello").waitFor();
    const at = me.page.url();
    await me.page.locator(".rail-link").first().focus();
    await me.page.keyboard.press("?");
    await me.page.locator("dialog").waitFor();
    await me.page.keyboard.press("Escape");
    await me.page.locator("dialog").waitFor({ state: "detached" });
    expect(me.page.url()).toBe(at);
  });
});

describe("a tab", () => {
  it("keeps its id over a reload and shares it with no copy of itself", async () => {
    const me = await device();
    const id = () => sessionStorage.getItem("meanwhile/tab");
    const mine = await me.page.evaluate(id);
    await me.page.reload();
    await me.page.locator(".rail").waitFor();
    await reads(me.page.locator("[data-list]"), /\S/);
    expect(await me.page.evaluate(id)).toBe(mine);
    const opened = me.page.waitForEvent("popup");
    await me.page.evaluate(() => void window.open("/"));
    const copy = await opened;
    await expect.poll(() => copy.evaluate(id), { timeout: 5_000 }).not.toBe(mine);
    expect(await copy.evaluate(id)).toBeTruthy();
    expect(await me.page.evaluate(id)).toBe(mine);
  });
});

describe("a browser that keeps nothing", () => {
  it("shows a note and works", async () => {
    const me = await device(async (page) => {
      await page.addInitScript(() => {
        Object.defineProperty(window, "localStorage", {
          get: () => {
            throw new DOMException("forbidden", "SecurityError");
          },
        });
      });
    });
    await reads(me.page.locator(".banner"), "your text lives only in this tab");
    await me.say("ask in a while");
    await me.own.fill("from memory");
    await me.act("submit").click();
    await me.said("You chose from memory.").waitFor();
  });
});

describe("sessions", () => {
  it("are renamed, forked, archived and deleted", async () => {
    const me = await device();
    await me.say("tidy up");
    await me.said("Noted: tidy up").waitFor();
    const menu = me.page.getByRole("button", { name: "Actions" });
    await menu.click();
    await me.page.getByRole("button", { name: "Rename" }).click();
    await me.page.getByLabel("New title").fill("Tidied");
    await me.page.getByRole("button", { name: "Save" }).click();
    await reads(me.page.locator(".session-title"), "Tidied");
    await menu.click();
    await me.page.getByRole("button", { name: "Fork" }).click();
    await reads(me.page.locator(".session-title"), "Tidied (fork)");
    await menu.click();
    await me.page.getByRole("button", { name: "Delete" }).click();
    await me.page.getByRole("button", { name: "Delete for good" }).click();
    const title = (text: string) => me.page.locator(".row-title", { hasText: text });
    await title("(fork)").waitFor({ state: "detached" });
    expect(await title("Tidied").count()).toBe(1);
    await me.page.locator(".row-session", { hasText: "Tidied" }).click();
    await menu.click();
    await me.page.getByRole("button", { name: "Archive" }).click();
    await me.page.getByRole("button", { name: /archived session/ }).waitFor();
    await title("Tidied").waitFor({ state: "detached" });
  });

  it("are stopped by a person, and the question says so", async () => {
    const me = await device();
    await me.say("ask in a while");
    await me.own.fill("half a thought");
    await me.page.getByRole("button", { name: "Stop", exact: true }).click();
    await reads(me.card, /was stopped|Closed|moved on/);
    await reads(me.card, "half a thought");
    await me.picture("stopped");
    await me.act("dismiss").click();
    await me.page.locator(".composer").waitFor();
  });
});

describe("languages and themes", () => {
  it("follow the settings and are kept", async () => {
    const me = await device();
    await me.page.goto(`${host.url}#/settings`);
    await me.page.getByLabel("Language").selectOption("zh");
    await me.page.getByLabel("外观").selectOption("dark");
    await me.page.reload();
    await reads(me.page.locator(".rail"), "收件箱");
    expect(await me.page.locator("html").getAttribute("lang")).toBe("zh");
    expect(await me.page.locator("html").getAttribute("data-theme")).toBe("dark");
    await me.picture("settings-zh-dark");
  });
});
