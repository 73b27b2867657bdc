// One JSON-RPC peer on one connection. Both sides may call. A stream is a call whose items come
// as $/progress notices, in order, before its response; an item, or the params of a notice, too
// large for one frame comes as {chunk, more} values whose joined text is the item.
//
// A Peer lives exactly as long as its connection. Nothing in it survives a reconnect: whoever
// calls is told ConnectionLost, and what to do about that is not decided here.

import {
  ConnectionLost,
  decode,
  encode,
  type Frame,
  FrameError,
  frameBytesMax,
  type Id,
  internalError,
  isObject,
  methodNotFound,
  RemoteError,
  type RpcErrorBody,
  requestCancelled,
} from "./frame.ts";

/** Calls of ours that may be unanswered at once. */
export const inFlightMax = 256;
/** Calls of theirs: more than the 1000 questions that the module shows, so that it is the one to
 * refuse, for a refusal counts as having left the question. */
export const servedMax = 4096;
/** The largest item that chunks may add up to, in UTF-16 units. */
export const itemCharsMax = 64 << 20;

export interface Channel {
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface Incoming {
  readonly method: string;
  readonly params: unknown;
  /** Aborted when the caller cancels or the connection goes. */
  readonly signal: AbortSignal;
}

/** Serves the other side's calls. The promise's value is the result; a thrown Refusal the error. */
export type Serve = (incoming: Incoming) => Promise<unknown>;

/** Thrown by a Serve to answer with this error. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly body: RpcErrorBody;
  constructor(body: RpcErrorBody) {
    super(body.message);
    this.body = body;
  }
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Makes the call a stream: called for each item, in order, before the call resolves. */
  onItem?: (item: unknown) => void;
}

interface Outgoing {
  resolve(result: unknown): void;
  reject(error: Error): void;
  onItem: ((item: unknown) => void) | undefined;
  join: Joiner;
}

/** Puts chunks back together. */
class Joiner {
  #chunks: string[] = [];
  #chars = 0;

  /** The whole value, or nothing while more is to come. */
  take(value: unknown): { whole: unknown } | undefined {
    if (!isChunk(value)) return { whole: value };
    this.#chars += value.chunk.length;
    if (this.#chars > itemCharsMax) throw new FrameError("item larger than its limit");
    this.#chunks.push(value.chunk);
    if (value.more) return undefined;
    const text = this.#chunks.join("");
    this.#chunks = [];
    this.#chars = 0;
    try {
      return { whole: JSON.parse(text) };
    } catch {
      throw new FrameError("chunks do not join to JSON");
    }
  }
}

export class Peer {
  readonly #channel: Channel;
  readonly #serve: Serve;
  readonly #notice: (method: string, params: unknown) => void;
  readonly #ours = new Map<Id, Outgoing>();
  readonly #theirs = new Map<Id, AbortController>();
  readonly #notices = new Joiner();
  #nextId = 1;
  #lost: Error | undefined;

  constructor(
    channel: Channel,
    serve: Serve,
    notice: (method: string, params: unknown) => void = () => {},
  ) {
    this.#channel = channel;
    this.#serve = serve;
    this.#notice = notice;
  }

  call(method: string, params: unknown, options: CallOptions = {}): Promise<unknown> {
    const { signal, onItem } = options;
    if (this.#lost) return Promise.reject(this.#lost);
    if (signal?.aborted) return Promise.reject(abortError(signal));
    if (this.#ours.size >= inFlightMax) {
      return Promise.reject(new Error(`more than ${inFlightMax} calls in flight`));
    }
    const id = this.#nextId++;
    const text = encode({ kind: "call", id, method, params });
    if (tooLarge(text)) return Promise.reject(new Error(`${method}: larger than one frame`));
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        this.#send({ kind: "notice", method: "$/cancelRequest", params: { id } });
      };
      const done = (): void => {
        this.#ours.delete(id);
        signal?.removeEventListener("abort", cancel);
      };
      this.#ours.set(id, {
        onItem,
        join: new Joiner(),
        resolve: (result) => {
          done();
          resolve(result);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      signal?.addEventListener("abort", cancel, { once: true });
      this.#channel.send(text);
    });
  }

  notify(method: string, params: unknown): void {
    this.#send({ kind: "notice", method, params });
  }

  /** Takes one text frame. A frame that is not of the protocol ends the connection. */
  receive(text: string): void {
    if (this.#lost) return;
    try {
      this.#take(decode(text));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#channel.close(4400, "PROTOCOL");
      this.lose(error.message);
    }
  }

  /** The connection is gone: every call of ours fails, every call of theirs is aborted. */
  lose(why: string): void {
    if (this.#lost) return;
    const lost = new ConnectionLost(why);
    this.#lost = lost;
    for (const call of [...this.#ours.values()]) call.reject(lost);
    for (const controller of this.#theirs.values()) controller.abort(lost);
    this.#theirs.clear();
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case "call":
        void this.#answer(frame.id, frame.method, frame.params);
        return;
      case "notice":
        if (frame.method === "$/progress") this.#progress(frame.params);
        else if (frame.method === "$/cancelRequest") this.#cancelled(frame.params);
        else this.#noticed(frame.method, frame.params);
        return;
      case "result":
        // A response to a call we no longer know is late, not wrong: it is dropped.
        this.#ours.get(frame.id)?.resolve(frame.result);
        return;
      case "error":
        if (frame.id === null) throw new FrameError(frame.error.message);
        this.#ours.get(frame.id)?.reject(new RemoteError(frame.error));
        return;
    }
  }

  #noticed(method: string, params: unknown): void {
    // The frames of one notice come together, so one joiner serves them all.
    const joined = this.#notices.take(params);
    if (joined) this.#notice(method, joined.whole);
  }

  #progress(params: unknown): void {
    if (!isObject(params)) throw new FrameError("progress without params");
    const token = params.token;
    if (typeof token !== "number" && typeof token !== "string") {
      throw new FrameError("progress without token");
    }
    const call = this.#ours.get(token);
    if (!call?.onItem) return;
    const item = call.join.take(params.value);
    if (item) call.onItem(item.whole);
  }

  #cancelled(params: unknown): void {
    const id = isObject(params) ? params.id : undefined;
    if (typeof id !== "number" && typeof id !== "string") return;
    this.#theirs.get(id)?.abort(new Refusal({ code: requestCancelled, message: "cancelled" }));
  }

  async #answer(id: Id, method: string, params: unknown): Promise<void> {
    if (this.#theirs.size >= servedMax || this.#theirs.has(id)) {
      this.#send({ kind: "error", id, error: { code: internalError, message: "too many calls" } });
      return;
    }
    const controller = new AbortController();
    this.#theirs.set(id, controller);
    let frame: Frame;
    try {
      const result = await this.#serve({ method, params, signal: controller.signal });
      frame = { kind: "result", id, result };
    } catch (error) {
      const body =
        error instanceof Refusal ? error.body : { code: internalError, message: "internal error" };
      frame = { kind: "error", id, error: body };
    }
    this.#theirs.delete(id);
    this.#send(frame);
  }

  #send(frame: Frame): void {
    if (this.#lost) return;
    this.#channel.send(encode(frame));
  }
}

/** The answer to a method this side does not serve. */
export function unknownMethod(method: string): Refusal {
  return new Refusal({ code: methodNotFound, message: `no method ${method}` });
}

function isChunk(value: unknown): value is { chunk: string; more: boolean } {
  return (
    isObject(value) &&
    typeof value.chunk === "string" &&
    typeof value.more === "boolean" &&
    Object.keys(value).length === 2
  );
}

function tooLarge(text: string): boolean {
  // The length in UTF-16 units bounds the bytes from both sides; only the band between is measured.
  if (text.length > frameBytesMax) return true;
  if (text.length * 3 <= frameBytesMax) return false;
  return new TextEncoder().encode(text).length > frameBytesMax;
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("aborted");
}
