import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  Link,
  type LinkState,
  pingEveryMs,
  type Socket,
  silenceMaxMs,
  wakeProofMs,
} from "./link.ts";

class TestSocket implements Socket {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  readonly sent: { id?: number; method?: string; params?: Record<string, unknown> }[] = [];
  readonly closed: number[] = [];
  readonly url: string;
  readonly protocol: string;
  constructor(url: string, protocol: string) {
    this.url = url;
    this.protocol = protocol;
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(code = 1000): void {
    this.closed.push(code);
  }
  receive(doc: object): void {
    this.onmessage?.({ data: JSON.stringify({ jsonrpc: "2.0", ...doc }) } as never);
  }
  lose(code: number): void {
    this.onclose?.({ code } as never);
  }
}

const welcome = {
  protocol: 1,
  clientId: "c1",
  host: { version: "1" },
  module: { path: "/client.wasm", sha256: "ab" },
  scopes: ["read"],
};

function setup(token: string | undefined = "secret") {
  const sockets: TestSocket[] = [];
  const states: LinkState[] = [];
  const events: string[] = [];
  const link = new Link({
    url: "ws://host/rpc",
    client: { name: "page", version: "1" },
    token: () => token,
    random: () => 1,
    open: (url, protocol) => {
      const socket = new TestSocket(url, protocol);
      sockets.push(socket);
      return socket;
    },
    serve: () => Promise.resolve({}),
    notice: () => {},
    onState: (state) => states.push(state),
    onOnline: () => events.push("online"),
    onOffline: () => events.push("offline"),
  });
  const last = (): TestSocket => {
    const socket = sockets.at(-1);
    if (!socket) throw new Error("no socket");
    return socket;
  };
  const goOnline = async (): Promise<TestSocket> => {
    last().onopen?.(undefined as never);
    last().receive({ id: 1, result: welcome });
    await vi.advanceTimersByTimeAsync(0);
    return last();
  };
  return { link, sockets, states, events, last, goOnline };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("signing in", () => {
  it("sends the token in initialize and nowhere else", async () => {
    const { link, last, goOnline, states, events } = setup();
    link.start();
    expect([last().url, last().protocol]).toEqual(["ws://host/rpc", "meanwhile.v1"]);
    const socket = await goOnline();
    expect(socket.sent[0]).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocol: 1, client: { name: "page", version: "1" }, token: "secret" },
    });
    expect(states).toEqual(["connecting", "online"]);
    expect(events).toEqual(["online"]);
  });

  for (const { code, state } of [
    { code: 4401, state: "signedOut" },
    { code: 4400, state: "mismatched" },
  ]) {
    it(`stops for good on ${code}`, async () => {
      const { link, sockets, last } = setup();
      link.start();
      last().lose(code);
      await vi.advanceTimersByTimeAsync(600_000);
      link.wake();
      expect([link.state, sockets.length]).toEqual([state, 1]);
      link.start();
      expect(sockets).toHaveLength(2);
    });
  }

  it("treats an answer of another protocol as a mismatch", async () => {
    const { link, last } = setup();
    link.start();
    last().onopen?.(undefined as never);
    last().receive({ id: 1, result: { ...welcome, protocol: 2 } });
    await vi.advanceTimersByTimeAsync(0);
    expect(link.state).toBe("mismatched");
  });
});

describe("keeping the connection", () => {
  it("backs off, longer each time, and starts over after it was online", async () => {
    const { link, sockets, last, goOnline, events } = setup();
    link.start();
    for (const waitMs of [500, 1_000, 2_000, 4_000]) {
      last().lose(1006);
      const before = sockets.length;
      await vi.advanceTimersByTimeAsync(waitMs - 1);
      expect(sockets).toHaveLength(before);
      await vi.advanceTimersByTimeAsync(1);
      expect(sockets).toHaveLength(before + 1);
    }
    const socket = await goOnline();
    socket.lose(1006);
    expect(events).toEqual(["online", "offline"]);
    const before = sockets.length;
    await vi.advanceTimersByTimeAsync(500);
    expect(sockets).toHaveLength(before + 1);
  });

  it("connects at once when the network is back", async () => {
    const { link, sockets, last } = setup();
    link.start();
    for (let i = 0; i < 8; i++) {
      last().lose(1006);
      await vi.advanceTimersByTimeAsync(30_000);
    }
    last().lose(1006);
    const before = sockets.length;
    link.wake();
    expect(sockets).toHaveLength(before + 1);
  });

  it("pings every 20 s and answers theirs", async () => {
    const { link, goOnline } = setup();
    link.start();
    const socket = await goOnline();
    const pings = () => socket.sent.filter((frame) => frame.method === "ping").length;
    const before = pings();
    await vi.advanceTimersByTimeAsync(pingEveryMs);
    expect(pings()).toBe(before + 1);
    socket.receive({ id: "p", method: "ping", params: {} });
    await vi.advanceTimersByTimeAsync(0);
    expect(socket.sent.at(-1)).toMatchObject({ id: "p", result: { time: expect.any(Number) } });
  });

  it("drops a peer that answers no ping for a minute, and not one that does", async () => {
    const { link, goOnline, last, sockets } = setup();
    link.start();
    const socket = await goOnline();
    for (let i = 0; i < 10; i++) {
      for (const frame of socket.sent.splice(0)) {
        if (frame.method === "ping") socket.receive({ id: frame.id, result: { time: 1 } });
      }
      await vi.advanceTimersByTimeAsync(pingEveryMs);
    }
    expect(link.state).toBe("online");
    await vi.advanceTimersByTimeAsync(silenceMaxMs - pingEveryMs - 1);
    expect(link.state).toBe("online");
    await vi.advanceTimersByTimeAsync(1);
    expect(link.state).toBe("waiting");
    expect(socket.closed).toEqual([4408]);
    await vi.advanceTimersByTimeAsync(500);
    expect(last()).not.toBe(socket);
    expect(sockets).toHaveLength(2);
  });

  it("doubts an old socket after waking: it must prove itself in seconds", async () => {
    const { link, goOnline } = setup();
    link.start();
    await goOnline();
    link.wake();
    await vi.advanceTimersByTimeAsync(wakeProofMs);
    expect(link.state).toBe("waiting");
  });

  it("hears nothing from a socket it has left", async () => {
    const { link, goOnline, states } = setup();
    link.start();
    const socket = await goOnline();
    socket.lose(1006);
    await vi.advanceTimersByTimeAsync(500);
    const before = states.length;
    socket.lose(4401);
    socket.receive({ id: 1, result: welcome });
    expect(states).toHaveLength(before);
  });
});
