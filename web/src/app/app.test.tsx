// The whole page over the real module and a host in memory.

import { render } from "preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Keys } from "../store/keys.ts";
import { Root } from "../ui/frame.tsx";
import { type ClientModule, ModuleError } from "../wasm/abi.ts";
import { loadModule } from "../wasm/testmodule.ts";
import { App } from "./app.ts";
import { FakeHost } from "./fakehost.ts";

const question = {
  id: "store",
  question: "Which store?",
  header: "Database",
  options: [{ label: "Postgres (Recommended)" }, { label: "SQLite" }],
};

const sessionRow = (over: object = {}) => ({
  id: "s1",
  title: "payments",
  status: "running",
  agent: { kind: "external", name: "build-bot" },
  active: [],
  queued: [],
  seq: 0,
  createdAt: 1,
  updatedAt: 1,
  ...over,
});

const active = (state: "open" | "continued") => ({ callId: "q1", questions: [question], state });

let root: HTMLElement;
let app: App;
let host: FakeHost;
let modules: ClientModule[];
let mono: number;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  location.hash = "";
  document.body.innerHTML = "";
  root = document.createElement("div");
  document.body.append(root);
  host = new FakeHost();
  modules = [];
  mono = 1_000;
  vi.spyOn(window, "fetch").mockResolvedValue(new Response("{}") as never);
});

afterEach(() => {
  app.signOut();
  render(null, root);
});

async function start(token: string | undefined): Promise<void> {
  const keys = new Keys(
    () => localStorage,
    () => sessionStorage,
  );
  keys.token = token;
  app = new App({
    clock: { wall: () => 1_700_000_000_000 + mono, mono: () => mono },
    keys,
    machine: async () => {
      const { module, loaded } = await loadModule();
      modules.push(module);
      host.sha256 = loaded.sha256;
      return { machine: module, sha256: loaded.sha256 };
    },
    draw: () => Math.random().toString(16).slice(2).padEnd(32, "0"),
    version: "test",
    window: window as unknown as Window & typeof globalThis,
    openSocket: host.open,
  });
  render(<Root app={app} />, root);
  await app.start();
  await settle();
}

/** Lets the queues, the store's frame and the views come to rest. */
async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setTimeout(resolve, 20));
}

function find<T extends HTMLElement = HTMLElement>(selector: string): T {
  const found = root.querySelector<T>(selector);
  if (!found) throw new Error(`nothing fits ${selector}: ${root.innerHTML.slice(0, 2_000)}`);
  return found;
}

const text = (selector: string) => find(selector).textContent ?? "";

/** An ask that reaches the page, opened from its row. */
async function ask(timed = true) {
  host.sessions.push(sessionRow({ active: [active("open")] }));
  await start("secret");
  const wait = timed ? { callId: "q1", timed: true } : { callId: "q1" };
  const answer = host.request("e1", "s1", { questions: [question], wait });
  await settle();
  return { answer };
}

async function open(): Promise<void> {
  find("[data-row]").click();
  await settle();
}

describe("signed out", () => {
  it("asks for the login link, trades its code for a token, and then connects", async () => {
    await start(undefined);
    expect(host.called).toEqual([]);
    const bodies: unknown[] = [];
    vi.spyOn(window, "fetch").mockImplementation(async (_url, init) => {
      bodies.push(JSON.parse(String(init?.body)));
      return new Response('{"token":"t1"}') as never;
    });
    find<HTMLInputElement>("input").value = "http://127.0.0.1/#code=abc123";
    find<HTMLFormElement>("form").requestSubmit();
    await settle();
    expect(bodies).toMatchObject([{ code: "abc123" }]);
    expect(host.of("initialize")[0]?.params.token).toBe("t1");
    expect(root.querySelector(".rail")).not.toBeNull();
  });

  it("comes back here, and stops trying, when the host does not take the token", async () => {
    host.refuse = 4401;
    await start("secret");
    expect(text("h1")).toBe("Sign in");
    expect(localStorage.getItem("meanwhile/token")).toBeNull();
    expect(host.of("initialize")).toHaveLength(1);
  });
});

describe("a question that arrives", () => {
  it("is listed with its time and takes no focus", async () => {
    await ask();
    expect(text(".row-needs")).toContain("Database");
    expect(text(".row-needs")).toContain("build-bot");
    expect(text(".row-time")).toContain("2:00");
    expect(root.contains(document.activeElement)).toBe(false);
    expect(text("[data-status]")).toContain("new question");
  });

  it("says what is so when a translator has put its own nodes in place of the text", async () => {
    const { answer } = await ask();
    answer.catch(() => {}); // handed on when the agent carries on
    await open();
    for (const selector of [".time-text", "[data-act=submit] span", ".row-time span:last-child"]) {
      const element = find(selector);
      element.innerHTML = `<font>${element.textContent}</font>`;
    }
    find('[data-o="1"]').click();
    await settle();
    expect(text(".time-text")).toBe("Waiting for you");
    expect(text(".row-time")).toBe("waits");
    host.item("host/follow", { upsert: [sessionRow({ active: [active("continued")], seq: 5 })] });
    await settle();
    expect(text(".time-text")).toContain("Your answer will still reach it.");
    expect(text("[data-act=submit]")).toContain("Send late answer");
  });

  it("is answered through the request that brought it", async () => {
    const { answer } = await ask();
    await open();
    expect(text(".time-text")).toBe("2:00, then build-bot carries on and you can still answer");
    find('.opt input[data-o="1"]').click();
    await settle();
    expect(text(".time-text")).toBe("Waiting for you");
    find('[data-act="submit"]').click();
    expect(await answer).toEqual({ answers: [{ id: "store", selected: ["SQLite"] }] });
    await settle();
    expect(text(".time-text")).toBe("Sent, waiting for the agent");
    expect(find<HTMLButtonElement>('[data-act="submit"]').disabled).toBe(true);
  });

  it("sends the asker's label whatever a translation made of it", async () => {
    const { answer } = await ask();
    await open();
    const label = find(".opt-label");
    const font = document.createElement("font");
    font.textContent = "Postgresql auf Deutsch";
    label.replaceChildren(font);
    find('.opt input[data-o="0"]').click();
    await settle();
    find('[data-act="submit"]').click();
    expect(await answer).toEqual({
      answers: [{ id: "store", selected: ["Postgres (Recommended)"] }],
    });
  });

  it("pauses while the answer has focus and goes on after", async () => {
    await ask();
    await open();
    find("[data-own]").focus();
    await settle();
    expect(text(".time-text")).toBe("Paused while you are here · 2:00");
    find("[data-own]").blur();
    await settle();
    expect(text(".time-text")).toContain("then build-bot carries on");
  });

  it("stays as the module has it when a click does not count", async () => {
    await ask();
    await open();
    host.notify("remote/settled", { eventId: "e1", kind: "result", by: "other", byName: "Phone" });
    await settle();
    const option = root.querySelector<HTMLInputElement>('.opt input[data-o="1"]');
    option?.click();
    await settle();
    expect(root.querySelector<HTMLInputElement>('.opt input[data-o="1"]')?.checked ?? false).toBe(
      false,
    );
  });

  it("moves on with a real Enter and not with one that confirms a candidate", async () => {
    const { answer } = await ask();
    await open();
    const area = find<HTMLTextAreaElement>("[data-own]");
    area.focus();
    area.value = "二つ";
    area.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    const press = (over: object) =>
      area.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...over }),
      );
    press({ isComposing: true });
    press({ keyCode: 229 });
    press({ shiftKey: true });
    await settle();
    expect(text(".time-text")).toBe("Waiting for you");
    press({});
    expect(await answer).toEqual({ answers: [{ id: "store", selected: [], custom: "二つ" }] });
  });

  it("keeps its draft in storage and finds it there after a reload", async () => {
    await ask();
    await open();
    const area = find<HTMLTextAreaElement>("[data-own]");
    area.value = "later";
    area.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    const kept = Object.keys(localStorage).filter((key) => key.startsWith("mw/draft/"));
    expect(kept).toHaveLength(1);
    const tab = sessionStorage.getItem("meanwhile/tab");
    app.signOut();
    render(null, root);
    host.sessions.length = 0;
    await ask();
    expect(sessionStorage.getItem("meanwhile/tab")).toBe(tab);
    if (!root.querySelector("section.card")) await open();
    expect(find<HTMLTextAreaElement>("[data-own]").value).toBe("later");
    expect(text(".notes")).toContain("Draft restored");
    expect(text(".time-text")).toBe("Waiting for you");
  });

  it("can be put away and opened again; nothing is sent", async () => {
    await ask();
    await open();
    find('button[aria-label="Put away"]').click();
    await settle();
    expect(root.querySelector("section.card")).toBeNull();
    await open();
    expect(root.querySelector("section.card")).not.toBeNull();
    expect(host.of("userQuestions/answer")).toEqual([]);
  });
});

describe("a plan", () => {
  const plan = {
    id: "plan",
    question: "Go ahead?",
    detail: "1. one\n2. two <img src=x>",
    options: [{ label: "Go on" }, { label: "No" }],
    intent: { kind: "plan-review", approve: "Go on" },
  };

  async function review() {
    host.sessions.push(sessionRow());
    await start("secret");
    const answer = host.request("e1", "s1", { questions: [plan] });
    const outcome = answer.then(
      (result) => ({ result }),
      (error) => ({ error }),
    );
    await settle();
    await open();
    return { outcome };
  }

  it("shows all of it and approves with the asker's own label", async () => {
    const { outcome } = await review();
    expect(root.querySelectorAll(".plan li")).toHaveLength(2);
    expect(root.querySelector(".plan img")).toBeNull();
    expect(text('[data-act="approve"]')).toBe("Go on");
    expect(text(".time-text")).toBe("build-bot waits for you");
    find('[data-act="approve"]').click();
    expect(await outcome).toEqual({ result: { answers: [{ id: "plan", selected: ["Go on"] }] } });
  });

  it("sends the words of a change, and refuses without a word when there are none", async () => {
    const { outcome } = await review();
    const area = find<HTMLTextAreaElement>("[data-own]");
    area.value = "smaller steps";
    area.dispatchEvent(new Event("input", { bubbles: true }));
    find('[data-act="changes"]').click();
    expect(await outcome).toEqual({
      result: { answers: [{ id: "plan", selected: [], custom: "smaller steps" }] },
    });
    const second = host
      .request("e2", "s1", { questions: [{ ...plan, id: "again" }] })
      .catch((error) => error);
    await settle();
    find('[data-row*="e2"]').click();
    await settle();
    find('[data-act="changes"]').click();
    expect(await second).toMatchObject({ data: { code: "ASK_CANCELLED" } });
  });
});

describe("a question that was carried on", () => {
  it("is answered by call, once, under an id of its own", async () => {
    host.sessions.push(sessionRow({ active: [active("continued")] }));
    host.answers.set("userQuestions/answer", () => ({
      accepted: true,
      messageId: "m1",
      state: "queued",
    }));
    await start("secret");
    expect(text(".row-late")).toContain("Which store?");
    await open();
    expect(text(".time-text")).toContain("Carried on");
    expect(text('[data-act="submit"]')).toContain("Send late answer");
    const submit = find('[data-act="submit"]');
    submit.click();
    submit.click();
    await settle();
    const calls = host.of("userQuestions/answer");
    expect(calls).toHaveLength(1);
    expect(calls[0]?.params).toMatchObject({
      sessionId: "s1",
      callId: "q1",
      answer: { answers: [{ id: "store", selected: ["Postgres (Recommended)"] }] },
    });
    expect(calls[0]?.params.submissionId).toMatch(/.{8}/);
  });

  it("says who took it and keeps the text when another device answered", async () => {
    const { answer } = await ask();
    answer.catch(() => {});
    await open();
    const area = find<HTMLTextAreaElement>("[data-own]");
    area.value = "mine";
    area.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    host.notify("$/cancelRequest", { id: answer.id });
    host.notify("remote/settled", { eventId: "e1", kind: "result", by: "other", byName: "Phone" });
    host.item("host/follow", { upsert: [sessionRow({ active: [], seq: 5 })] });
    await settle();
    expect(text("section.card")).toContain("Answered by Phone.");
    expect(text("section.card")).toContain("Your text is kept.");
    expect(text("section.card")).toContain("mine");
    expect(root.querySelector('[data-act="copy"]')).not.toBeNull();
    find('[data-act="message"]').click();
    await settle();
    expect(host.of("session/send")[0]?.params).toMatchObject({ sessionId: "s1" });
    expect(String(host.of("session/send")[0]?.params.text)).toContain("mine");
  });
});

describe("a connection that goes", () => {
  it("says so, keeps the text, and comes back by itself", async () => {
    await ask();
    await open();
    host.connection?.drop(1006);
    await settle();
    expect(text("[data-offline]")).toContain("Offline. Your text is safe on this device.");
    expect(find<HTMLButtonElement>('[data-act="submit"]').disabled).toBe(true);
    window.dispatchEvent(new Event("online"));
    await settle();
    expect(root.querySelector("[data-offline]")).toBeNull();
    expect(host.of("initialize")).toHaveLength(2);
  });
});

describe("a call of the page's own", () => {
  it("waits for the connection that is being made, and says so when there is none", async () => {
    await start("secret");
    host.answers.set("session/create", () => ({ sessionId: "s9" }));
    host.connection?.drop(1006);
    await settle();
    await expect(app.createSession("x")).rejects.toThrow("Offline");
    app.retry();
    expect(await app.createSession("y")).toBe("s9");
    expect(host.of("session/create")).toHaveLength(1);
  });
});

describe("a module that stops", () => {
  it("is replaced by a fresh one, which has the drafts", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    await ask();
    await open();
    const area = find<HTMLTextAreaElement>("[data-own]");
    area.value = "survives";
    area.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
    const first = modules[0];
    if (!first) throw new Error("no module");
    vi.spyOn(first, "step").mockImplementation(() => {
      throw new ModuleError("TRAP", "stopped", true);
    });
    find('[data-act="wait"], [data-act="skip"]').click();
    await settle();
    await settle();
    expect(modules).toHaveLength(2);
    host.request("e1", "s1", { questions: [question], wait: { callId: "q1", timed: true } });
    await settle();
    expect(find<HTMLTextAreaElement>("[data-own]").value).toBe("survives");
  });
});

describe("languages", () => {
  it("change at once and set the page's own", async () => {
    await start("secret");
    app.prefer({ language: "zh" });
    await settle();
    expect(document.documentElement.lang).toBe("zh");
    expect(text(".rail")).toContain("收件箱");
  });
});
