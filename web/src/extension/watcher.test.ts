// The watcher over the real module and a host in memory.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeHost } from "../app/fakehost.ts";
import { en } from "../ui/strings/index.ts";
import { loadModule } from "../wasm/testmodule.ts";
import type { NoticeOptions } from "./api.ts";
import { noticeOf } from "./notice.ts";
import { type Badge, Watcher } from "./watcher.ts";
import { wordsFor } from "./words.ts";

const question = {
  id: "store",
  question: "Which store?",
  header: "Database",
  options: [{ label: "SQLite" }, { label: "Postgres" }],
};

let host: FakeHost;
let kept: string | null;
let shown: Map<string, NoticeOptions>;
let told: string[];
let badge: Badge | undefined;
let failed: string[];
let refused: boolean;
let running: Watcher[];
let machineSha: string;

beforeEach(() => {
  host = new FakeHost();
  kept = null;
  shown = new Map();
  told = [];
  badge = undefined;
  failed = [];
  refused = false;
  running = [];
  host.sessions.push({
    id: "s1",
    title: "payments",
    status: "running",
    agent: { kind: "external", name: "build-bot" },
    active: [{ callId: "q1", questions: [question], state: "open" }],
    queued: [],
    seq: 0,
    createdAt: 1,
    updatedAt: 1,
  });
});

afterEach(() => {
  for (const each of running) each.stop();
});

async function watch(): Promise<Watcher> {
  const watcher = new Watcher({
    base: "http://127.0.0.1:7331",
    token: "secret",
    version: "test",
    clock: { wall: () => 1_700_000_000_000, mono: () => Math.floor(performance.now()) },
    draw: () => "0".repeat(32),
    machine: async () => {
      const { module, loaded } = await loadModule();
      machineSha = loaded.sha256;
      return { machine: module, sha256: loaded.sha256 };
    },
    announced: {
      read: () => kept,
      write: (text) => {
        kept = text;
      },
    },
    notices: () => true,
    badge: (now) => {
      badge = now;
    },
    describe: (card) => noticeOf(card, en, wordsFor(en), { icon: "", buttons: true }),
    show: (key, notice) => {
      told.push(key);
      shown.set(key, notice);
    },
    clear: (key) => void shown.delete(key),
    notSent: (key) => void failed.push(key),
    refused: () => {
      refused = true;
    },
    openSocket: host.open,
  });
  running.push(watcher);
  await watcher.start();
  await settle();
  return watcher;
}

/** Lets the queues come to rest. */
async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setTimeout(resolve, 20));
}

function deliver() {
  return host.request("e1", "s1", {
    questions: [question],
    wait: { callId: "q1", timed: true },
  });
}

const keyOf = () => {
  const [key] = told;
  if (key === undefined) throw new Error("nothing was told");
  return key;
};

describe("the watcher", () => {
  it("counts and tells, and claims nothing", async () => {
    await watch();
    void deliver();
    await settle();
    expect(badge).toEqual({ needs: 1, state: "online" });
    expect([...shown.values()][0]?.buttons?.[0]).toEqual({ title: "Send: SQLite" });
    expect(host.of("userQuestions/attachWait")).toEqual([]);
    expect(host.of("userQuestions/answer")).toEqual([]);
  });

  it("sends what the button named, by the delivery it holds, once", async () => {
    const watcher = await watch();
    const answer = deliver();
    await settle();
    const key = keyOf();
    await Promise.all([watcher.press(key), watcher.press(key)]);
    expect(await answer).toEqual({ answers: [{ id: "store", selected: ["SQLite"] }] });
    expect(failed).toEqual([]);
  });

  it("sends late by a call, and says when the host did not take it", async () => {
    const [session] = host.sessions;
    Object.assign(session ?? {}, {
      active: [{ callId: "q1", questions: [question], state: "continued" }],
    });
    kept = JSON.stringify([["c:s1:q1", { o: 1, label: "Postgres" }]]);
    host.answers.set("userQuestions/answer", () => ({ accepted: false }));
    const watcher = await watch();
    await watcher.press("c:s1:q1");
    await settle();
    expect(host.of("userQuestions/answer").map(({ params }) => params.answer)).toEqual([
      { answers: [{ id: "store", selected: ["Postgres"] }] },
    ]);
    expect(failed).toEqual(["c:s1:q1"]);
  });

  it("sends nothing when the option is not what the button named any more", async () => {
    kept = JSON.stringify([["c:s1:q1", { o: 0, label: "Redis" }]]);
    const watcher = await watch();
    let answered = false;
    void deliver().then(() => {
      answered = true;
    });
    await settle();
    await watcher.press("c:s1:q1");
    await settle();
    expect(failed).toEqual(["c:s1:q1"]);
    expect(answered).toBe(false);
  });

  it("tells nothing twice, also after its death, and forgets what is no longer listed", async () => {
    const first = await watch();
    void deliver();
    await settle();
    first.stop();
    await watch();
    void deliver();
    await settle();
    expect(told).toHaveLength(1);
    host.sessions.length = 0;
    running[1]?.stop();
    await watch();
    await settle();
    expect(kept).toBe("[]");
    expect(shown.size).toBe(0);
  });

  it("keeps its module when the host has another build", async () => {
    host.sha256 = "f".repeat(64);
    await watch();
    void deliver();
    await settle();
    expect(machineSha).not.toBe(host.sha256);
    expect(badge?.needs).toBe(1);
  });

  it("stops at a refused token", async () => {
    host.refuse = 4401;
    await watch();
    expect(refused).toBe(true);
    expect(badge?.state).toBe("signedOut");
  });
});
