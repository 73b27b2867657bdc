import { describe, expect, it } from "vitest";
import { ConnectionLost, type Frame, RemoteError } from "./frame.ts";
import { inFlightMax, Peer, Refusal, type Serve, servedMax, unknownMethod } from "./peer.ts";

function setup(serve: Serve = (incoming) => Promise.reject(unknownMethod(incoming.method))) {
  const sent: Frame[] = [];
  const closed: number[] = [];
  const notices: string[] = [];
  const noticed: unknown[] = [];
  const peer = new Peer(
    {
      send: (text) => {
        const { jsonrpc, ...frame } = JSON.parse(text);
        expect(jsonrpc).toBe("2.0");
        sent.push(frame);
      },
      close: (code) => closed.push(code),
    },
    serve,
    (method, params) => {
      notices.push(method);
      noticed.push(params);
    },
  );
  const receive = (doc: object) => peer.receive(JSON.stringify({ jsonrpc: "2.0", ...doc }));
  return { peer, sent, closed, notices, noticed, receive };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("calls of ours", () => {
  it("resolves with the result and rejects with the business code and field", async () => {
    const { peer, sent, receive } = setup();
    const good = peer.call("a", { x: 1 });
    const bad = peer.call("b", {});
    expect(sent).toEqual([
      { id: 1, method: "a", params: { x: 1 } },
      { id: 2, method: "b", params: {} },
    ]);
    receive({
      id: 2,
      error: { code: -32000, message: "no", data: { code: "BAD_ANSWER", field: "f" } },
    });
    receive({ id: 1, result: [1] });
    expect(await good).toEqual([1]);
    await expect(bad).rejects.toBeInstanceOf(RemoteError);
    await expect(bad).rejects.toMatchObject({ code: "BAD_ANSWER", field: "f" });
  });

  it("cancels by notice and still takes the answer that follows", async () => {
    const { peer, sent, receive } = setup();
    const controller = new AbortController();
    const call = peer.call("slow", {}, { signal: controller.signal });
    controller.abort();
    expect(sent[1]).toEqual({ method: "$/cancelRequest", params: { id: 1 } });
    receive({ id: 1, error: { code: -32800, message: "cancelled" } });
    await expect(call).rejects.toBeInstanceOf(RemoteError);
    controller.abort();
    expect(sent).toHaveLength(2);
  });

  it("fails with ConnectionLost, now and afterwards", async () => {
    const { peer } = setup();
    const call = peer.call("a", {});
    peer.lose("gone");
    await expect(call).rejects.toBeInstanceOf(ConnectionLost);
    await expect(peer.call("b", {})).rejects.toBeInstanceOf(ConnectionLost);
  });

  it("bounds the calls in flight", async () => {
    const { peer, sent } = setup();
    for (let i = 0; i < inFlightMax; i++) peer.call("a", {}).catch(() => {});
    await expect(peer.call("a", {})).rejects.toThrow(/in flight/);
    expect(sent).toHaveLength(inFlightMax);
    peer.lose("done");
  });

  it("refuses a call larger than a frame before sending it", async () => {
    const { peer, sent } = setup();
    await expect(peer.call("a", { text: "é".repeat(600_000) })).rejects.toThrow(/larger/);
    expect(sent).toHaveLength(0);
  });
});

describe("streams", () => {
  it("delivers items in order, joins chunks, and applies them only when whole", async () => {
    const { peer, receive } = setup();
    const items: unknown[] = [];
    const stream = peer.call("s", {}, { onItem: (item) => items.push(item) });
    const progress = (value: unknown) =>
      receive({ method: "$/progress", params: { token: 1, value } });
    progress({ n: 1 });
    const text = JSON.stringify({ n: 2, text: "häl\u{1f600}f" });
    progress({ chunk: text.slice(0, 9), more: true });
    progress({ chunk: text.slice(9, 20), more: true });
    expect(items).toHaveLength(1);
    progress({ chunk: text.slice(20), more: false });
    progress({ n: 3 });
    receive({ id: 1, result: {} });
    await stream;
    expect(items).toEqual([{ n: 1 }, { n: 2, text: "häl\u{1f600}f" }, { n: 3 }]);
  });

  it("takes an item that merely has a member named chunk for what it is", () => {
    const { peer, receive } = setup();
    const items: unknown[] = [];
    peer.call("s", {}, { onItem: (item) => items.push(item) }).catch(() => {});
    const value = { chunk: "x", more: true, other: 1 };
    receive({ method: "$/progress", params: { token: 1, value } });
    expect(items).toEqual([value]);
    peer.lose("done");
  });

  it("drops items of a stream that has ended", async () => {
    const { peer, receive, closed } = setup();
    const items: unknown[] = [];
    const stream = peer.call("s", {}, { onItem: (item) => items.push(item) });
    receive({ id: 1, result: {} });
    await stream;
    receive({ method: "$/progress", params: { token: 1, value: 1 } });
    expect([items, closed]).toEqual([[], []]);
  });
});

describe("calls of theirs", () => {
  it("answers with the result, the refusal, or no detail of an error of ours", async () => {
    const { sent, receive } = setup(async ({ method, params }) => {
      if (method === "echo") return params;
      if (method === "refuse") {
        throw new Refusal({ code: -32000, message: "m", data: { code: "NEXT" } });
      }
      throw new Error("secret");
    });
    receive({ id: "1", method: "echo", params: { a: 1 } });
    receive({ id: "2", method: "refuse", params: {} });
    receive({ id: "3", method: "broken", params: {} });
    await settled();
    expect(sent).toEqual([
      { id: "1", result: { a: 1 } },
      { id: "2", error: { code: -32000, message: "m", data: { code: "NEXT" } } },
      { id: "3", error: { code: -32603, message: "internal error" } },
    ]);
  });

  it("aborts on their cancel and on loss, and sends nothing after a loss", async () => {
    const reasons: unknown[] = [];
    const { peer, sent, receive } = setup(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            reject(signal.reason);
          });
        }),
    );
    receive({ id: "1", method: "wait", params: {} });
    receive({ id: "2", method: "wait", params: {} });
    receive({ method: "$/cancelRequest", params: { id: "1" } });
    await settled();
    expect(sent).toEqual([{ id: "1", error: { code: -32800, message: "cancelled" } }]);
    peer.lose("gone");
    await settled();
    expect(reasons[1]).toBeInstanceOf(ConnectionLost);
    expect(sent).toHaveLength(1);
  });
});

describe("many at once", () => {
  it("serves as many questions as the module shows, and refuses only beyond its own bound", async () => {
    const { sent, receive } = setup(() => new Promise(() => {}));
    for (let i = 0; i < servedMax; i++) receive({ id: `${i}`, method: "wait", params: {} });
    await settled();
    expect(sent).toEqual([]);
    receive({ id: "over", method: "wait", params: {} });
    await settled();
    expect(sent).toMatchObject([{ id: "over", error: { message: "too many calls" } }]);
  });

  it("joins the params of a notice that was too large for a frame", () => {
    const { notices, noticed, receive } = setup();
    const text = JSON.stringify({ eventIds: ["a", "b"] });
    receive({ method: "remote/synced", params: { chunk: text.slice(0, 7), more: true } });
    expect(notices).toEqual([]);
    receive({ method: "remote/synced", params: { chunk: text.slice(7), more: false } });
    expect([notices, noticed]).toEqual([["remote/synced"], [{ eventIds: ["a", "b"] }]]);
  });
});

describe("frames that are not of the protocol", () => {
  const cases = [
    { name: "not JSON", text: "{" },
    { name: "an array", text: "[]" },
    { name: "no version", text: '{"id":1,"result":1}' },
    { name: "an unknown member", text: '{"jsonrpc":"2.0","id":1,"result":1,"x":1}' },
    { name: "another case", text: '{"jsonrpc":"2.0","ID":1,"Method":"a"}' },
    { name: "a fractional id", text: '{"jsonrpc":"2.0","id":1.5,"result":1}' },
    { name: "neither call nor response", text: '{"jsonrpc":"2.0","id":1}' },
    { name: "chunks that join to nothing", text: "" },
  ];
  for (const { name, text } of cases) {
    it(`closes with 4400 on ${name}`, async () => {
      const { peer, closed, receive } = setup();
      const call = peer.call("s", {}, { onItem: () => {} });
      if (text === "") {
        receive({ method: "$/progress", params: { token: 1, value: { chunk: "{", more: false } } });
      } else peer.receive(text);
      expect(closed).toEqual([4400]);
      await expect(call).rejects.toBeInstanceOf(ConnectionLost);
    });
  }

  it("passes other notices on and ignores a late response", () => {
    const { closed, notices, receive } = setup();
    receive({ method: "remote/settled", params: {} });
    receive({ id: 99, result: 1 });
    expect([closed, notices]).toEqual([[], ["remote/settled"]]);
  });
});
