import { describe, expect, it, vi } from "vitest";
import type { Card } from "../protocol/view.ts";
import { en } from "../ui/strings/index.ts";
import type { Api, StorageChange } from "./api.ts";
import { Mirror } from "./mirror.ts";
import { noticeOf, offerOf } from "./notice.ts";
import { hostOf, pair, readPairing } from "./pairing.ts";
import { wordsFor } from "./words.ts";

const one: Card = {
  key: "c:s:1",
  group: "needs",
  state: "open",
  sessionId: "s",
  agent: { name: "build-bot" },
  header: "Database",
  text: "Which store?",
  submit: true,
  questions: [
    {
      id: "store",
      question: "Which store?",
      options: [{ label: "SQLite" }, { label: "Postgres (Recommended)", recommended: true }],
    },
  ],
};

const [question] = one.questions ?? [];
if (!question) throw new Error("no question");

describe("the button of a notification", () => {
  for (const [name, card, want] of [
    ["names the recommended option", one, "Postgres (Recommended)"],
    ["still answers late", { ...one, state: "continued" }, "Postgres (Recommended)"],
    [
      "names the first where none is recommended",
      { ...one, questions: [{ ...question, options: [{ label: "a" }, { label: "b" }] }] },
      "a",
    ],
    ["is not there for two questions", { ...one, questions: [question, question] }, undefined],
    [
      "is not there for a multiple choice",
      { ...one, questions: [{ ...question, multi: true }] },
      undefined,
    ],
    ["is not there for free text", { ...one, questions: [{ id: "n", question: "?" }] }, undefined],
    [
      "is not there for a plan, which is read first",
      { ...one, plan: { q: 0, detail: "…", approve: "Approve" } },
      undefined,
    ],
    ["is not there over a draft", { ...one, edited: true }, undefined],
    ["is not there once sent", { ...one, busy: "sent" }, undefined],
    ["is not there once ended", { ...one, state: "ended" }, undefined],
  ] as [string, Card, string | undefined][]) {
    it(name, () => expect(offerOf(card)?.label).toBe(want));
  }

  it("says what it sends", () => {
    const notice = noticeOf(one, en, wordsFor(en), { icon: "i.png", buttons: true });
    expect(notice.title).toBe("build-bot · Database");
    expect(notice.buttons).toEqual([{ title: "Send: Postgres" }, { title: "Open" }]);
    expect(notice.offer).toEqual({ o: 1, label: "Postgres (Recommended)" });
  });

  it("is left out where the browser has none, as in Firefox", () => {
    const notice = noticeOf(one, en, wordsFor(en), { icon: "i.png", buttons: false });
    expect(notice).not.toHaveProperty("buttons");
    expect(notice).not.toHaveProperty("offer");
  });
});

describe("pairing", () => {
  for (const [name, host, pasted, want] of [
    [
      "a link brings its own host",
      "http://127.0.0.1:7331",
      "https://box.example:8443/#code=abcdef123",
      { host: "https://box.example:8443", code: "abcdef123" },
    ],
    [
      "a bare code goes to the host of the field",
      "127.0.0.1:7331",
      " abcdef123 ",
      { host: "http://127.0.0.1:7331", code: "abcdef123" },
    ],
    ["no code", "http://127.0.0.1:7331", "", "code"],
    ["no host", "http://", "abcdef123", "host"],
  ] as const) {
    it(name, () => expect(readPairing(host, pasted)).toEqual(want));
  }

  it("takes no other scheme", () => {
    expect(hostOf("javascript:alert(1)")).toBeUndefined();
  });

  for (const [status, why] of [
    [401, "bad-code"],
    [403, "unreachable"],
    [404, "odd"],
    [429, "too-many"],
  ] as const) {
    it(`tells a ${status} apart`, async () => {
      const send = vi.fn(async () => new Response("no", { status }));
      expect(await pair("http://h", "code", "Chrome/1 Linux", send)).toEqual({ refused: why });
    });
  }

  it("hands the code over once, in the body", async () => {
    const send = vi.fn(async () => new Response('{"token":"t"}'));
    expect(await pair("http://h", "secret", "Chrome/1 Linux", send)).toEqual({ token: "t" });
    const [url, init] = send.mock.calls[0] as unknown as [string, RequestInit];
    expect(url).toBe("http://h/auth/login");
    expect(JSON.parse(String(init.body))).toEqual({
      code: "secret",
      label: "Chrome on Linux, extension",
    });
  });
});

describe("the shared storage", () => {
  function browser(items: Record<string, unknown>) {
    let tell: (changes: Record<string, StorageChange>, area: string) => void = () => {};
    const set = vi.fn(async (_items: Record<string, string>) => {});
    const remove = vi.fn(async (_key: string) => {});
    const api = {
      storage: {
        local: { get: async () => items, set, remove },
        onChanged: {
          addListener: (listener: typeof tell) => {
            tell = listener;
          },
        },
      },
    } as unknown as Api;
    return { api, set, remove, tell: (...args: Parameters<typeof tell>) => tell(...args) };
  }

  it("is read at once and written through", async () => {
    const { api, set, remove } = browser({ a: "1", odd: 7 });
    const mirror = await Mirror.open(api);
    expect([mirror.length, mirror.key(0), mirror.getItem("a")]).toEqual([1, "a", "1"]);
    mirror.setItem("b", "2");
    mirror.setItem("b", "2");
    mirror.removeItem("a");
    mirror.removeItem("a");
    expect(set.mock.calls).toEqual([[{ b: "2" }]]);
    expect(remove.mock.calls).toEqual([["a"]]);
  });

  it("hears what another place wrote, and not its own echo", async () => {
    const { api, tell } = browser({});
    const mirror = await Mirror.open(api);
    const heard: unknown[] = [];
    mirror.onChanged((...change) => heard.push(change));
    mirror.setItem("mine", "1");
    tell({ mine: { newValue: "1" } }, "local");
    tell({ theirs: { newValue: "2" } }, "local");
    tell({ theirs: { newValue: "3" } }, "session");
    tell({ theirs: {} }, "local");
    expect(heard).toEqual([
      ["theirs", "2"],
      ["theirs", null],
    ]);
    expect(mirror.getItem("theirs")).toBeNull();
  });
});
