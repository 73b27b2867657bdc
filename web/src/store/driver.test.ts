import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Effect, Input, Step } from "../protocol/step.ts";
import { ConnectionLost, RemoteError } from "../rpc/frame.ts";
import { Peer, Refusal } from "../rpc/peer.ts";
import { ModuleError } from "../wasm/abi.ts";
import { Driver, timerMaxMs } from "./driver.ts";

/** A module that answers each input as the test says and remembers all of them. */
function setup() {
  const inputs: Input[] = [];
  const log: string[] = [];
  const sent: { id?: number; method?: string; params?: unknown }[] = [];
  const script = new Map<string, (input: Input) => Step>();
  const posts: { resolve(value: unknown): void; reject(error: unknown): void }[] = [];
  const items = new Map<string, string>();
  let full = false;
  let dead: Error | undefined;
  let mono = 1_000;
  let peer: Peer | undefined = new Peer(
    { send: (text) => sent.push(JSON.parse(text)), close: () => {} },
    () => Promise.reject(new Error("unused")),
  );
  const driver = new Driver({
    machine: {
      step: (_wall, _mono, input) => {
        inputs.push(input);
        return script.get(input.type)?.(input) ?? {};
      },
      view: (_wall, at) => ({ at }),
    },
    clock: { wall: () => 0, mono: () => mono },
    items: {
      set: (key, value) => {
        if (full) throw new Error("full");
        items.set(key, value);
        log.push(`set ${key}`);
      },
      remove: (key) => {
        items.delete(key);
        log.push(`remove ${key}`);
      },
    },
    peer: () => peer,
    post: () => new Promise((resolve, reject) => posts.push({ resolve, reject })),
    onDirty: (names, soon) => log.push(`dirty ${names.join()}${soon ? " soon" : ""}`),
    onShown: (effect) => log.push(effect.do),
    onDead: (error) => {
      dead = error;
    },
  });
  const answer = (id: number, body: object) =>
    peer?.receive(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
  const does = (...effects: Effect[]) => script.set("tick", () => ({ effects }));
  return {
    driver,
    inputs,
    log,
    sent,
    script,
    posts,
    items,
    answer,
    does,
    tick: () => driver.send({ type: "tick" }),
    fill: (on: boolean) => {
      full = on;
    },
    unplug: () => {
      const old = peer;
      peer = undefined;
      old?.lose("gone");
    },
    at: (ms: number) => {
      mono = ms;
    },
    deadError: () => dead,
    since: (n: number) => inputs.slice(n),
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const soon = () => vi.advanceTimersByTimeAsync(0);

describe("effects", () => {
  it("are carried out in order, then what is dirty is told, then one timer is armed", async () => {
    const t = setup();
    t.script.set("act", () => ({
      effects: [
        { do: "store", key: "mw/a", value: "1" },
        { do: "announce", code: "sent" },
        { do: "remove", key: "mw/a" },
      ],
      dirty: ["cards"],
      next: 1_500,
    }));
    t.driver.send({ type: "act", key: "k", act: "submit" });
    expect(t.log).toEqual(["set mw/a", "announce", "remove mw/a", "dirty cards soon"]);
    await vi.advanceTimersByTimeAsync(499);
    expect(t.inputs).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(t.inputs.at(-1)).toEqual({ type: "tick" });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(t.inputs).toHaveLength(2);
  });

  it("put off an input that they cause until all of them are done", () => {
    const t = setup();
    t.fill(true);
    t.does({ do: "store", key: "mw/a", value: "1" }, { do: "announce", code: "sent" });
    t.script.set("storage", () => {
      t.log.push("storage");
      return {};
    });
    t.tick();
    expect(t.log).toEqual(["announce", "storage"]);
    expect(t.since(1)).toEqual([{ type: "storage", failed: true }]);
  });

  it("tell of a storage that fails once, and once when it works again", () => {
    const t = setup();
    t.does({ do: "store", key: "mw/a", value: "1" });
    t.fill(true);
    t.tick();
    t.tick();
    t.fill(false);
    t.tick();
    t.tick();
    expect(t.inputs.filter((input) => input.type === "storage")).toEqual([
      { type: "storage", failed: true },
      { type: "storage", failed: false },
    ]);
  });

  it("slice a timer that the browser would fire at once", async () => {
    const t = setup();
    t.script.set("tick", () => ({ next: 1_000 + timerMaxMs * 2 }));
    t.tick();
    await vi.advanceTimersByTimeAsync(timerMaxMs - 1);
    expect(t.inputs).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(t.inputs).toHaveLength(2);
  });
});

describe("calls", () => {
  it("come back as result or error, with the business code", async () => {
    const t = setup();
    t.does(
      { do: "call", id: "a", method: "m", params: { x: 1 } },
      { do: "call", id: "b", method: "m", params: {} },
    );
    t.tick();
    expect(t.sent.map((frame) => [frame.method, frame.params])).toEqual([
      ["m", { x: 1 }],
      ["m", {}],
    ]);
    t.answer(1, { result: { accepted: true } });
    t.answer(2, { error: { code: -32000, message: "no", data: { code: "REPLY_QUEUED" } } });
    await soon();
    expect(t.since(1)).toEqual([
      { type: "result", id: "a", result: { accepted: true } },
      {
        type: "error",
        id: "b",
        error: { code: -32000, message: "no", data: { code: "REPLY_QUEUED" } },
      },
    ]);
  });

  it("deliver the items of a stream before its end", async () => {
    const t = setup();
    t.does({ do: "stream", id: "s", method: "userQuestions/attachWait", params: {} });
    t.tick();
    const params = { token: 1, value: { remainingMs: 5 } };
    t.answer(1, { method: "$/progress", params, id: undefined });
    t.answer(1, { result: {} });
    await soon();
    expect(t.since(1)).toEqual([
      { type: "item", id: "s", value: { remainingMs: 5 } },
      { type: "result", id: "s", result: {} },
    ]);
  });

  it("end silently when they are aborted, and with the connection", async () => {
    const t = setup();
    t.does(
      { do: "call", id: "a", method: "m", params: {} },
      { do: "call", id: "b", method: "m", params: {} },
    );
    t.tick();
    t.does({ do: "abort", id: "a" });
    t.tick();
    expect(t.sent.at(-1)).toMatchObject({ method: "$/cancelRequest", params: { id: 1 } });
    t.answer(1, { error: { code: -32800, message: "cancelled" } });
    t.unplug();
    t.driver.down();
    await soon();
    expect(t.since(2)).toEqual([{ type: "down" }]);
  });

  it("go over POST when asked to, also while nothing is connected, and outlive the socket", async () => {
    const t = setup();
    t.unplug();
    t.driver.down();
    t.does({ do: "call", id: "p", method: "remote/settle", params: {}, post: true });
    t.tick();
    t.tick();
    t.driver.down();
    t.posts[1]?.resolve({ taken: true });
    await soon();
    expect(t.inputs.at(-1)).toEqual({ type: "result", id: "p", result: { taken: true } });
  });

  it("tell a POST that the network refused from one that the host refused", async () => {
    const t = setup();
    t.does({ do: "call", id: "p", method: "remote/settle", params: {}, post: true });
    t.tick();
    t.posts[0]?.reject(new ConnectionLost("net"));
    await soon();
    expect(t.inputs.at(-1)).toMatchObject({ type: "error", error: { code: -32001 } });
    t.tick();
    t.posts[1]?.reject(new RemoteError({ code: -32000, message: "m", data: { code: "X" } }));
    await soon();
    expect(t.inputs.at(-1)).toMatchObject({ error: { code: -32000, data: { code: "X" } } });
  });
});

describe("calls of the host", () => {
  const method = "user-questions/request";
  function request(t: ReturnType<typeof setup>) {
    const controller = new AbortController();
    const answer = t.driver.serve({ method, params: { eventId: "e" }, signal: controller.signal });
    const input = t.inputs.at(-1);
    if (input?.type !== "request") throw new Error("no request");
    return { controller, answer, id: input.id };
  }

  it("are answered when the module says so, with a result or an error", async () => {
    const t = setup();
    const first = request(t);
    const second = request(t);
    expect(first.id).not.toBe(second.id);
    t.does(
      { do: "respond", id: first.id, result: { answers: [] } },
      {
        do: "respond",
        id: second.id,
        error: { code: -32000, message: "m", data: { code: "ASK_TIMED_OUT" } },
      },
    );
    t.tick();
    expect(await first.answer).toEqual({ answers: [] });
    await expect(second.answer).rejects.toBeInstanceOf(Refusal);
    await expect(second.answer).rejects.toMatchObject({
      body: { data: { code: "ASK_TIMED_OUT" } },
    });
  });

  it("tell the module of a cancel, but not of the loss that it hears of as a whole", async () => {
    const t = setup();
    const first = request(t);
    first.answer.catch(() => {});
    first.controller.abort(new Refusal({ code: -32800, message: "cancelled" }));
    expect(t.inputs.at(-1)).toEqual({ type: "cancel", id: first.id });
    const second = request(t);
    second.answer.catch(() => {});
    const before = t.inputs.length;
    second.controller.abort(new ConnectionLost("gone"));
    t.driver.down();
    expect(t.since(before)).toEqual([{ type: "down" }]);
    // An answer for a call that is over goes nowhere.
    t.does({ do: "respond", id: second.id, result: {} });
    t.tick();
    await soon();
  });

  it("get new ids on a new connection", () => {
    const t = setup();
    const first = request(t);
    first.answer.catch(() => {});
    t.driver.down();
    const second = request(t);
    second.answer.catch(() => {});
    expect(second.id).not.toBe(first.id);
  });
});

describe("a module that fails", () => {
  it("goes on after a refused input and stops after a trap", () => {
    const t = setup();
    const complaint = vi.spyOn(console, "error").mockImplementation(() => {});
    t.script.set("tick", () => {
      throw new ModuleError("BAD_INPUT", "m", false);
    });
    t.tick();
    expect([complaint.mock.calls.length, t.deadError()]).toEqual([1, undefined]);
    t.script.set("tick", () => {
      throw new ModuleError("TRAP", "m", true);
    });
    t.tick();
    expect(t.deadError()).toMatchObject({ code: "TRAP" });
    const before = t.inputs.length;
    t.tick();
    expect(t.inputs).toHaveLength(before);
    expect(t.driver.view({ view: "cards" })).toBeUndefined();
  });
});
