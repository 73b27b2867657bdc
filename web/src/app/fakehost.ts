// A host for tests, in memory: it speaks the wire over a pair of queues and does what it is told.
// It keeps the shapes of the wire and none of the host's rules.

import { decode, encode, type Frame, type Id } from "../rpc/frame.ts";
import type { Socket } from "../rpc/link.ts";

interface Stream {
  id: Id;
  method: string;
  params: Record<string, unknown>;
}

interface Outgoing {
  resolve(result: unknown): void;
  reject(error: { code: number; message: string; data?: unknown }): void;
}

export interface Called {
  method: string;
  params: Record<string, unknown>;
}

class Connection {
  readonly streams: Stream[] = [];
  readonly ours = new Map<Id, Outgoing>();
  readonly socket: Socket;
  closed = false;
  #next = 1;

  constructor(host: FakeHost) {
    this.socket = {
      onopen: null,
      onmessage: null,
      onclose: null,
      send: (text) => {
        if (!this.closed) queueMicrotask(() => host.take(this, decode(text)));
      },
      close: () => {
        this.closed = true;
        host.gone(this);
      },
    };
    queueMicrotask(() => this.socket.onopen?.(undefined as never));
  }

  send(frame: Frame): void {
    if (this.closed) return;
    // Each frame is a task of its own, as in a browser: what it settles runs before the next one.
    setTimeout(() => this.socket.onmessage?.({ data: encode(frame) } as never), 0);
  }

  call(method: string, params: unknown): Promise<unknown> & { id: Id } {
    const id = `h${this.#next++}`;
    const answer = new Promise((resolve, reject) => this.ours.set(id, { resolve, reject }));
    this.send({ kind: "call", id, method, params });
    return Object.assign(answer, { id });
  }

  drop(code: number): void {
    this.closed = true;
    queueMicrotask(() => this.socket.onclose?.({ code } as never));
  }
}

export class FakeHost {
  readonly called: Called[] = [];
  readonly sessions: Record<string, unknown>[] = [];
  /** Answers by method; what is not here answers with an empty object. */
  readonly answers = new Map<string, (params: Record<string, unknown>) => unknown>();
  claimMs = 120_000;
  sha256 = "";
  refuse: number | undefined;
  connection: Connection | undefined;

  open = (): Socket => {
    const connection = new Connection(this);
    this.connection = connection;
    return connection.socket;
  };

  take(connection: Connection, frame: Frame): void {
    if (frame.kind === "result") connection.ours.get(frame.id)?.resolve(frame.result);
    else if (frame.kind === "error" && frame.id !== null) {
      connection.ours.get(frame.id)?.reject(frame.error);
    } else if (frame.kind === "call") this.#serve(connection, frame);
    else if (frame.kind === "notice" && frame.method === "$/cancelRequest") {
      const { id } = frame.params as { id: Id };
      const at = connection.streams.findIndex((stream) => stream.id === id);
      if (at >= 0) connection.streams.splice(at, 1);
    }
  }

  gone(connection: Connection): void {
    if (this.connection === connection) this.connection = undefined;
  }

  /** Sends an item on every open stream of a method whose params match. */
  item(method: string, value: unknown, match: (params: Record<string, unknown>) => boolean = all) {
    for (const stream of this.connection?.streams ?? []) {
      if (stream.method === method && match(stream.params)) this.#progress(stream, value);
    }
  }

  request(eventId: string, sessionId: string, request: unknown) {
    if (!this.connection) throw new Error("nobody is connected");
    return this.connection.call("user-questions/request", { eventId, sessionId, request });
  }

  notify(method: string, params: unknown): void {
    this.connection?.send({ kind: "notice", method, params });
  }

  of(method: string): Called[] {
    return this.called.filter((call) => call.method === method);
  }

  #progress(stream: Stream, value: unknown): void {
    this.connection?.send({
      kind: "notice",
      method: "$/progress",
      params: { token: stream.id, value },
    });
  }

  #serve(connection: Connection, frame: Extract<Frame, { kind: "call" }>): void {
    const params = frame.params as Record<string, unknown>;
    const { id, method } = frame;
    this.called.push({ method, params });
    const reply = (result: unknown) => connection.send({ kind: "result", id, result });
    switch (method) {
      case "ping":
        reply({ time: 0 });
        return;
      case "initialize":
        if (this.refuse !== undefined) {
          connection.drop(this.refuse);
          return;
        }
        reply({
          protocol: 1,
          clientId: "client-1",
          host: { version: "test" },
          module: { path: "/client.wasm", sha256: this.sha256 },
          scopes: ["read", "answer", "admin"],
        });
        connection.send({ kind: "notice", method: "remote/synced", params: { eventIds: [] } });
        return;
      case "host/follow":
        connection.streams.push({ id, method, params });
        this.item("host/follow", { sessions: this.sessions });
        return;
      case "session/follow":
      case "userQuestions/attachWait": {
        const stream = { id, method, params };
        connection.streams.push(stream);
        if (method === "userQuestions/attachWait") {
          this.#progress(stream, { remainingMs: this.claimMs });
        } else {
          const first = this.answers.get(method)?.(params);
          if (first !== undefined) this.#progress(stream, first);
        }
        return;
      }
      default:
        reply(this.answers.get(method)?.(params) ?? {});
    }
  }
}

function all(): boolean {
  return true;
}
