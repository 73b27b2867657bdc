import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TranscriptView, Turn, ViewRequest } from "../protocol/view.ts";
import { remaining, untilNextMs } from "./remaining.ts";
import { mergeTranscript, Store } from "./store.ts";

describe("remaining", () => {
  const cases = [
    { ms: 0, want: { unit: "seconds", seconds: 0 } },
    { ms: 1, want: { unit: "seconds", seconds: 1 } },
    { ms: 59_000, want: { unit: "seconds", seconds: 59 } },
    { ms: 59_001, want: { unit: "clock", minutes: 1, seconds: 0 } },
    { ms: 60_001, want: { unit: "clock", minutes: 1, seconds: 15 } },
    { ms: 134_000, want: { unit: "clock", minutes: 2, seconds: 15 } },
    { ms: 600_000, want: { unit: "clock", minutes: 10, seconds: 0 } },
    { ms: 600_001, want: { unit: "minutes", minutes: 11 } },
    { ms: 7_200_000, want: { unit: "hours", hours: 2, minutes: 0 } },
    { ms: 26 * 3_600_000, want: { unit: "days", days: 1, hours: 2 } },
  ];
  for (const { ms, want } of cases) {
    it(`shows ${ms} ms`, () => expect(remaining(ms)).toEqual(want));
  }

  it("holds its text until it says it changes, and not much longer", () => {
    for (let left = 1_500_000; left > 0; left -= 7_321) {
      const next = untilNextMs(left);
      expect(next).toBeGreaterThan(0);
      if (next > 100) expect(remaining(left - next + 20)).toEqual(remaining(left));
      expect(remaining(Math.max(0, left - next - 1))).not.toEqual(remaining(left));
    }
  });

  it("needs no further look once there is nothing left", () => {
    expect(untilNextMs(0)).toBe(Number.POSITIVE_INFINITY);
  });
});

const turn = (i: number, rev = 1): Turn => ({ i, rev, state: "completed" });
const view = (over: Partial<TranscriptView>): TranscriptView => ({
  sessionId: "s",
  state: "live",
  ...over,
});

describe("mergeTranscript", () => {
  it("replaces what changed and keeps the identity of what did not", () => {
    const first = mergeTranscript(undefined, view({ total: 2, turns: [turn(0), turn(1)] }));
    const second = mergeTranscript(first, view({ total: 3, turns: [turn(1, 2), turn(2)] }));
    expect(second.turns.map((each) => [each.i, each.rev])).toEqual([
      [0, 1],
      [1, 2],
      [2, 1],
    ]);
    expect(second.turns[0]).toBe(first.turns[0]);
  });

  it("forgets everything on reset and what lies before base", () => {
    const first = mergeTranscript(
      undefined,
      view({ total: 3, turns: [turn(0), turn(1), turn(2)] }),
    );
    const moved = mergeTranscript(first, view({ total: 3, base: 2, turns: [] }));
    expect(moved.turns.map((each) => each.i)).toEqual([2]);
    const anew = mergeTranscript(first, view({ total: 1, reset: true, turns: [turn(0, 5)] }));
    expect(anew.turns.map((each) => each.rev)).toEqual([5]);
  });
});

describe("Store", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function setup() {
    const asked: ViewRequest[] = [];
    let left = 90_000;
    const store = new Store(() => 42);
    store.attach({
      view: <T>(request: ViewRequest) => {
        asked.push(request);
        const countdown = { state: "counting", remainingMs: left, totalMs: 120_000 };
        const cards = { conn: "up", cards: [{ key: "k", group: "needs", countdown }] };
        if (request.view === "cards") return cards as T;
        if (request.view === "card") return { key: request.key, countdown } as T;
        if (request.view === "transcript") {
          return { sessionId: "s", rev: 7, state: "live", total: 0 } as T;
        }
        return {} as T;
      },
    });
    return {
      store,
      asked,
      take: () => asked.splice(0),
      pass: (ms: number) => {
        left -= ms;
      },
    };
  }

  it("reads only what is dirty and on show", () => {
    const t = setup();
    t.take();
    t.store.dirty(["card:other", "transcript:s", "sessions"], true);
    expect(t.take()).toEqual([{ view: "sessions" }]);
    t.store.showCard("k");
    t.take();
    t.store.dirty(["card:k"], true);
    expect(t.take()).toEqual([{ view: "card", key: "k" }]);
    t.store.hideCard("k");
    t.store.dirty(["card:k"], true);
    expect(t.take()).toEqual([]);
  });

  it("asks a transcript for what is new since it last looked, and anew of another module", () => {
    const t = setup();
    t.store.showTranscript("s");
    t.take();
    t.store.dirty(["transcript:s"], true);
    expect(t.take()).toEqual([{ view: "transcript", sessionId: "s", since: 7 }]);
    t.store.attach({
      view: <T>(request: ViewRequest) => {
        t.asked.push(request);
        return {} as T;
      },
    });
    expect(t.take()).toContainEqual({ view: "transcript", sessionId: "s" });
  });

  it("gathers what is dirty within a frame", async () => {
    const t = setup();
    t.take();
    for (let i = 0; i < 100; i++) t.store.dirty(["sessions"], false);
    expect(t.take()).toEqual([]);
    await vi.advanceTimersByTimeAsync(16);
    expect(t.take()).toEqual([{ view: "sessions" }]);
  });

  it("looks at a running countdown again when its text changes, and keeps the wall time beside", async () => {
    const t = setup();
    t.take();
    expect(t.store.now.value).toBe(42);
    t.pass(15_000);
    await vi.advanceTimersByTimeAsync(14_900);
    expect(t.take()).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(t.take()).toEqual([{ view: "cards" }]);
  });
});
