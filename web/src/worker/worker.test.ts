import { describe, expect, it, vi } from "vitest";
import { bytesOf } from "../device/push.ts";
import { sendAnswer } from "./answer.ts";
import { type Device, isQuiet } from "./device.ts";
import { noticeOf, type Payload, payloadOf, words } from "./notice.ts";

const device: Device = { language: "en", sound: true, quiet: "" };
const ask: Payload = {
  v: 1,
  kind: "arrived",
  key: "c:s1:c1",
  agent: "build-bot",
  header: "Database",
  text: "Which store?",
  count: 1,
  sessionId: "s1",
  callId: "c1",
  eventId: "e1",
  questionId: "db",
  send: "Postgres (Recommended)",
};
const bare: Payload = { v: 1, kind: "arrived", key: "c:s1:c1", agent: "build-bot", count: 1 };

describe("a notice", () => {
  it("has the ask as its tag and offers what its buttons say", () => {
    const { title, options } = noticeOf(ask, device, 0);
    expect(title).toBe("build-bot · Database");
    expect(options).toMatchObject({ body: "Which store?", tag: "c:s1:c1", silent: false });
    expect(options.actions?.map((a) => a.title)).toEqual(["Send: Postgres", "Open"]);
  });

  it("shows nothing of a question whose text may not leave the host", () => {
    const { title, options } = noticeOf(bare, device, 0);
    expect([title, options.body]).toEqual(["build-bot", "1 question"]);
    expect(options.actions).toBeUndefined();
  });

  it("is silent where it only brings an older one up to date, at night, and without sound", () => {
    const silent = (p: Payload, d: Device, minute: number) => noticeOf(p, d, minute).options.silent;
    expect(silent({ ...ask, kind: "continued" }, device, 0)).toBe(true);
    expect(silent({ ...ask, kind: "settled", by: "Desk" }, device, 0)).toBe(true);
    expect(silent(ask, { ...device, sound: false }, 0)).toBe(true);
    expect(silent(ask, { ...device, quiet: "22:00-07:00" }, 23 * 60)).toBe(true);
    expect(silent(ask, { ...device, quiet: "22:00-07:00" }, 12 * 60)).toBe(false);
    expect(noticeOf({ ...ask, kind: "reminder" }, device, 0).options.renotify).toBe(true);
  });

  it("is worded for each kind in both languages", () => {
    for (const language of ["en", "zh"] as const) {
      const bodies = (["arrived", "reminder", "continued", "settled", "test"] as const).map(
        (kind) => noticeOf({ ...ask, kind }, { ...device, language }, 0).options.body,
      );
      expect(new Set(bodies).size).toBe(5);
    }
    expect(Object.keys(words.zh)).toEqual(Object.keys(words.en));
  });

  it("comes only of what this host sends", () => {
    expect(payloadOf(ask)).toEqual(ask);
    for (const doc of [null, 1, {}, { ...ask, v: 2 }, { ...ask, key: 1 }, { ...ask, kind: "x" }]) {
      expect(payloadOf(doc)).toBeUndefined();
    }
  });
});

describe("quiet hours", () => {
  it.each([
    ["22:00-07:00", "21:59", false],
    ["22:00-07:00", "22:00", true],
    ["22:00-07:00", "06:59", true],
    ["22:00-07:00", "07:00", false],
    ["13:00-14:00", "13:30", true],
    ["13:00-14:00", "14:00", false],
    ["", "03:00", false],
    ["soon", "03:00", false],
  ])("%s at %s: %s", (hours, at, want) => {
    const [h, m] = at.split(":").map(Number) as [number, number];
    expect(isQuiet(hours, h * 60 + m)).toBe(want);
  });
});

describe("the send button", () => {
  const host = (...results: unknown[]) => {
    const calls: { method: string; params: Record<string, unknown> }[] = [];
    const send = vi.fn(async (_url: unknown, init?: RequestInit) => {
      calls.push(JSON.parse(String(init?.body)));
      const result = results.shift();
      if (result === undefined) throw new Error("offline");
      return new Response(JSON.stringify({ jsonrpc: "2.0", id: 1, ...(result as object) }));
    });
    return { calls, send: send as unknown as typeof fetch };
  };

  it("settles an open ask with the asker's own label", async () => {
    const { calls, send } = host({ result: { taken: true } });
    expect(await sendAnswer(ask, "t", "x", send)).toBe(true);
    const answers = [{ id: "db", selected: ["Postgres (Recommended)"] }];
    expect(calls).toMatchObject([
      { method: "remote/settle", params: { eventId: "e1", result: { answers } } },
    ]);
  });

  it("sends late what carried on meanwhile", async () => {
    const { calls, send } = host({ result: { taken: false } }, { result: { accepted: true } });
    expect(await sendAnswer(ask, "t", "x", send)).toBe(true);
    expect(calls[1]).toMatchObject({
      method: "userQuestions/answer",
      params: { sessionId: "s1", callId: "c1", submissionId: "x" },
    });
  });

  it("never says sent unless the host has said so", async () => {
    for (const results of [
      [],
      [{ result: { taken: false } }],
      [{ result: { taken: false } }, { result: { accepted: false } }],
      [{ result: { taken: false } }, { error: { code: -32000, message: "NO_SESSION" } }],
      [
        { result: { taken: false, refused: { code: "BAD_ANSWER" } } },
        { result: { accepted: true } },
      ],
    ]) {
      expect(await sendAnswer(ask, "t", "x", host(...results).send)).toBe(false);
    }
    expect(await sendAnswer(bare, "t", "x", host({ result: { taken: true } }).send)).toBe(false);
  });
});

it("a key of the host is bytes for the browser", () => {
  expect([...bytesOf("-_8A")]).toEqual([251, 255, 0]);
});
