// The life of a question, clicked through in a browser against the built program.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Device, launch, reads } from "./browser.ts";
import { Host } from "./host.ts";
import { type ScriptOptions, script } from "./script.ts";

let browser: Browser;
let host: Host;
let devices: Device[] = [];

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

afterEach(async (context) => {
  if (context.task.result?.state === "fail") {
    for (const [i, device] of devices.entries()) {
      await device.picture(`failed-${context.task.name.replace(/\W+/g, "-")}-${i}`);
    }
    console.error(host?.log.slice(-4_000));
  }
  const faults = devices.flatMap((device) => device.faults);
  for (const device of devices) await device.close();
  devices = [];
  await host?.stop();
  expect(faults).toEqual([]);
});

async function start(options: ScriptOptions = {}): Promise<void> {
  host = await Host.start({ script: script(options) });
}

async function device(
  ...args: Parameters<typeof Device.open> extends [unknown, unknown, ...infer R] ? R : never
) {
  const opened = await Device.open(browser, host, ...args);
  devices.push(opened);
  return opened;
}

describe("a timed question", () => {
  it("is answered in time", async () => {
    await start();
    const me = await device();
    await me.say("ask in a while");
    await reads(me.line, /then the agent carries on and you can still answer/);
    await me.picture("card-docked");
    await me.option("SQLite").check();
    await reads(me.line, "Waiting for you");
    await me.act("submit").click();
    await me.said("You chose SQLite.").waitFor();
    expect(await me.card.count()).toBe(0);
    await me.unfold();
    await reads(me.ask("answered"), "Answered 1 of 1");
    await me.ask("answered").locator('[data-action="view"]').click();
    await reads(me.page.locator(".recorded-on"), "SQLite");
    await me.picture("answered-in-time");
  });

  it("carries on, does other work, and takes a late answer", async () => {
    await start();
    const me = await device();
    await me.say("ask in a second");
    await me.said("The other work is done.").waitFor();
    await reads(me.line, /^Carried on/);
    await me.unfold();
    await reads(me.ask("pending"), "Not answered yet");
    await me.picture("carried-on");
    await me.option("SQLite").check();
    await reads(me.act("submit"), "Send late answer");
    await me.act("submit").click();
    await me.said("So it is SQLite.").waitFor();
    await me.unfold();
    await reads(me.ask("answered"), "Answered 1 of 1");
    const reply = me.page.locator("[data-reply]");
    expect(await reply.count()).toBe(1);
    await reads(reply, "Which store should sessions use?");
    await reads(reply, "SQLite");
    expect(await me.page.locator(".n-user").count()).toBe(1);
    await me.picture("late-answer");
  });

  it("pauses under focus and freezes with the first edit", async () => {
    await start();
    const me = await device();
    await me.say("ask in a second");
    await me.own.focus();
    await reads(me.line, /^Paused while you are here/);
    await me.page.waitForTimeout(3_500);
    await reads(me.line, /^Paused while you are here/);
    await me.own.pressSequentially("neither");
    await reads(me.line, "Waiting for you");
    await me.page.locator(".session-title").click();
    await me.page.waitForTimeout(3_500);
    await reads(me.line, "Waiting for you");
    expect(await me.ask("waiting").count()).toBe(1);
    await me.act("submit").click();
    await me.said("You chose neither.").waitFor();
  });

  it("goes on counting when focus leaves it untouched", async () => {
    await start();
    const me = await device();
    await me.say("ask in a second");
    await me.own.focus();
    await reads(me.line, /^Paused/);
    await me.own.blur();
    await me.said("The other work is done.").waitFor();
    await reads(me.line, /^Carried on/);
  });

  it("keeps the draft and that it was edited over a reload", async () => {
    await start();
    const me = await device();
    await me.say("ask in a while");
    await me.own.fill("a plain file");
    await reads(me.line, "Waiting for you");
    await me.page.reload();
    await reads(me.line, "Waiting for you");
    expect(await me.own.inputValue()).toBe("a plain file");
    await reads(me.card, "Draft restored");
    await me.act("submit").click();
    await me.said("You chose a plain file.").waitFor();
  });

  it("keeps Take time over a reload, without a draft", async () => {
    await start();
    const me = await device();
    await me.say("ask in a while");
    await me.act("wait").click();
    await reads(me.line, "Waiting for you");
    await me.page.reload();
    await reads(me.line, "Waiting for you");
    await me.option("Postgres").click();
    await me.act("submit").click();
    await me.said(/You chose Postgres/).waitFor();
  });

  it("carries on while put away, and is opened again from its row", async () => {
    await start();
    const me = await device();
    await me.say("ask in a second");
    await me.card.getByLabel("Put away").click();
    await me.page.locator(".composer").waitFor();
    expect(await me.card.count()).toBe(0);
    await me.said("The other work is done.").waitFor();
    await me.unfold();
    await me.ask("pending").locator('[data-action="answer"]').click();
    await reads(me.line, /^Carried on/);
    await me.option("SQLite").check();
    await me.act("submit").click();
    await me.said("So it is SQLite.").waitFor();
  });

  it("asks several things: a choice turns the page and never sends", async () => {
    await start();
    const me = await device();
    await me.say("ask two things");
    await me.option("SQLite").click();
    await reads(me.card, "What shall it be called?");
    await me.page.waitForTimeout(500);
    await me.own.fill("meanwhile");
    await me.own.press("Enter");
    await me.said("You chose SQLite.").waitFor();
  });
});

describe("two devices", () => {
  it("race: one wins, the other is told who and keeps the text", async () => {
    await start();
    const desk = await device();
    const phone = await device();
    await desk.say("ask in a while");
    await phone.openFirstSession();
    await desk.own.fill("from the desk");
    await phone.own.fill("from the phone");
    await reads(phone.line, "Waiting for you");
    // Pressed in the page itself: a click that waits for its button would find it gone when it lost.
    const press = (device: Device) =>
      device.act("submit").evaluate((button: HTMLButtonElement) => button.click());
    await Promise.all([press(desk), press(phone)]);
    await desk.said(/You chose from the (desk|phone)\./).waitFor();
    const deskWon = (await desk.said("You chose from the desk.").count()) === 1;
    const [winner, loser] = deskWon ? [desk, phone] : [phone, desk];
    await reads(loser.card, "Your text is kept.");
    await reads(loser.card, deskWon ? "from the phone" : "from the desk");
    await loser.picture("loser");
    expect(await winner.card.count()).toBe(0);
    await loser.act("dismiss").click();
    await loser.page.locator(".composer").waitFor();
  });

  it("at the deadline: the one that types keeps its text and sends it late", async () => {
    await start();
    const desk = await device();
    const phone = await device();
    await desk.say("ask in a second");
    await desk.own.fill("still typing");
    await phone.openFirstSession();
    await reads(desk.line, /^Carried on/);
    expect(await desk.own.inputValue()).toBe("still typing");
    await desk.act("submit").click();
    await desk.said("So it is still typing.").waitFor();
    await phone.said("So it is still typing.").waitFor();
    expect(await phone.card.count()).toBe(0);
  });

  it("a submit under way while the other lets it carry on goes again by one press", async () => {
    await start();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const desk = await device(async (page) => {
      await page.routeWebSocket(/\/rpc$/, (socket) => {
        const server = socket.connectToServer();
        socket.onMessage(async (message) => {
          // The answer to the waterfall, and only that, is late on its way.
          if (/"result":\{"answers"/.test(String(message))) await held;
          server.send(message);
        });
      });
    });
    const phone = await device();
    await desk.say("ask in a second");
    await desk.own.fill("just in time");
    await desk.act("submit").click();
    await reads(desk.line, "Sent, waiting for the agent");
    await phone.openFirstSession();
    await reads(desk.card, "The agent had just carried on. Send once more?");
    await desk.picture("submit-again");
    release();
    expect(await desk.own.inputValue()).toBe("just in time");
    await desk.act("submit").click();
    await desk.said("So it is just in time.").waitFor();
    await desk.unfold();
    expect(await desk.page.locator("[data-reply]").count()).toBe(1);
  });
});

describe("a connection that is lost with the answer on it", () => {
  it("does not lose the answer: it goes by another road, once", async () => {
    await start();
    let cut = false;
    const me = await device(async (page) => {
      await page.routeWebSocket(/\/rpc$/, (socket) => {
        if (cut) {
          socket.close({ code: 4408 });
          return;
        }
        const server = socket.connectToServer();
        socket.onMessage((message) => {
          if (/"result":\{"answers"/.test(String(message))) {
            // The frame never arrives, and nobody can connect again.
            cut = true;
            server.close();
            socket.close({ code: 4408 });
          } else server.send(message);
        });
      });
    });
    const posts: string[] = [];
    me.page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/rpc")) {
        posts.push(request.postData() ?? "");
      }
    });
    await me.say("ask in a while");
    await me.own.fill("by post");
    const posted = me.page.waitForResponse((response) => response.url().endsWith("/rpc"));
    await me.act("submit").click();
    await me.page.locator("[data-offline]").waitFor();
    expect(await (await posted).json()).toMatchObject({ result: { taken: true } });
    expect(posts).toHaveLength(1);
    cut = false;
    await me.said("You chose by post.").waitFor({ timeout: 40_000 });
    expect(await me.card.count()).toBe(0);
  });
});

describe("a queued reply", () => {
  it("is shown, taken back, and answered again", async () => {
    await start({ work: "sleep 6" });
    const me = await device();
    await me.say("ask in a second");
    await reads(me.line, /^Carried on/);
    await me.own.fill("first thought");
    await me.act("submit").click();
    await reads(me.page.locator(".slip"), "In the agent's inbox");
    await reads(me.ask("queued"), "Answer on its way");
    await me.ask("queued").locator('[data-action="view"]').click();
    await reads(me.page.locator(".record"), "first thought");
    await me.picture("queued");
    await me.ask("queued").locator('[data-action="cancel"]').click();
    await reads(me.line, /^Carried on/);
    expect(await me.own.inputValue()).toBe("first thought");
    await me.own.fill("second thought");
    await me.act("submit").click();
    await me.said("So it is second thought.").waitFor();
    await me.unfold();
    expect(await me.page.locator("[data-reply]").count()).toBe(1);
  });
});

describe("a host that is killed", () => {
  it("while the question is open: it continues, and a late answer wakes the session", async () => {
    await start();
    const me = await device();
    await me.say("ask in a while");
    await me.own.fill("kept through it");
    await reads(me.line, "Waiting for you");
    await host.kill();
    await me.page.locator("[data-offline]").waitFor();
    expect(await me.own.inputValue()).toBe("kept through it");
    await host.up();
    await reads(me.line, /^Carried on/);
    expect(await me.own.inputValue()).toBe("kept through it");
    await me.act("submit").click();
    await me.said("So it is kept through it.").waitFor();
    await me.unfold();
    await reads(me.ask("answered"), "Answered 1 of 1");
  });

  it("after it carried on: it is still there, answerable, once", async () => {
    await start();
    const me = await device();
    await me.say("ask in a second");
    await me.said("The other work is done.").waitFor();
    await host.kill();
    await host.up();
    await me.page.reload();
    await reads(me.line, /^Carried on/);
    expect(await me.card.count()).toBe(1);
    await me.option("SQLite").check();
    await me.act("submit").click();
    await me.said("So it is SQLite.").waitFor();
    await me.unfold();
    expect(await me.page.locator("[data-reply]").count()).toBe(1);
  });
});
