// Drives client.wasm: one input, then every effect in order, then one timer.
//
// It owns the calls, streams and answers that the module asked for, and the timer. It decides
// nothing: what an answer means, and whether to try again, is the module's. An input that comes up
// while effects run (a full storage, a call that fails at once) waits for its turn.

import type { CallError, Effect, Input, Step } from "../protocol/step.ts";
import { networkRefused } from "../protocol/step.ts";
import type { ViewRequest } from "../protocol/view.ts";
import { ConnectionLost, RemoteError, type RpcErrorBody } from "../rpc/frame.ts";
import { type Incoming, type Peer, Refusal } from "../rpc/peer.ts";
import { ModuleError } from "../wasm/abi.ts";

/** setTimeout counts in 32 signed bits and fires at once beyond them. */
export const timerMaxMs = 2_147_483_647;

export interface Clock {
  /** Unix ms. */
  wall(): number;
  /** Monotonic ms from any origin. */
  mono(): number;
}

export interface Machine {
  step(wall: number, mono: number, input: Input): Step;
  view(wall: number, mono: number, request: ViewRequest): unknown;
}

/** Effects that are neither wire nor storage. */
export type Shown = Extract<
  Effect,
  { do: "announce" | "notify" | "unnotify" | "reveal" | "reload" }
>;

export interface DriverOptions {
  machine: Machine;
  clock: Clock;
  items: { set(key: string, value: string): void; remove(key: string): void };
  /** The connection, while there is one. */
  peer: () => Pick<Peer, "call"> | undefined;
  post: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;
  onDirty: (names: readonly string[], soon: boolean) => void;
  onShown: (effect: Shown) => void;
  /** The module has stopped; this driver does nothing any more. */
  onDead: (error: Error) => void;
}

type CallId = string | number;

interface Call {
  readonly controller: AbortController;
  /** The connection it ends with; a POST ends with none. */
  readonly connection: number | undefined;
}

export class Driver {
  readonly #options: DriverOptions;
  readonly #queue: Input[] = [];
  readonly #calls = new Map<CallId, Call>();
  readonly #requests = new Map<string, { answer(e: Extract<Effect, { do: "respond" }>): void }>();
  #running = false;
  #dead = false;
  #storageFailed = false;
  #connection = 0;
  #requestCount = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: DriverOptions) {
    this.#options = options;
  }

  send(input: Input): void {
    if (this.#dead) return;
    this.#queue.push(input);
    if (this.#running) return;
    this.#running = true;
    try {
      for (let next = this.#queue.shift(); next && !this.#dead; next = this.#queue.shift()) {
        this.#step(next);
      }
    } finally {
      this.#running = false;
    }
  }

  view<T>(request: ViewRequest): T | undefined {
    if (this.#dead) return undefined;
    const { machine, clock } = this.#options;
    try {
      return machine.view(clock.wall(), clock.mono(), request) as T;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** The host called us. The promise settles when the module answers, or when the call is over. */
  serve(incoming: Incoming): Promise<unknown> {
    const id = `c${this.#connection}r${++this.#requestCount}`;
    return new Promise((resolve, reject) => {
      this.#requests.set(id, {
        answer: (effect) => {
          this.#requests.delete(id);
          if (effect.error) reject(new Refusal(errorBody(effect.error)));
          else resolve(effect.result);
        },
      });
      incoming.signal.addEventListener("abort", () => {
        const known = this.#requests.delete(id);
        reject(incoming.signal.reason);
        // A lost connection is told to the module once, as a whole.
        if (known && !(incoming.signal.reason instanceof ConnectionLost)) {
          this.send({ type: "cancel", id });
        }
      });
      this.send({ type: "request", id, method: incoming.method, params: incoming.params });
    });
  }

  /** The connection is gone, and with it everything that was under way on it. */
  down(): void {
    this.#connection++;
    this.#requests.clear();
    for (const [id, call] of this.#calls) {
      if (call.connection !== undefined) this.#calls.delete(id);
    }
    this.send({ type: "down" });
  }

  stop(): void {
    this.#dead = true;
    clearTimeout(this.#timer);
    for (const call of this.#calls.values()) call.controller.abort();
    this.#calls.clear();
    this.#requests.clear();
  }

  #step(input: Input): void {
    const { machine, clock, onDirty } = this.#options;
    let step: Step;
    try {
      step = machine.step(clock.wall(), clock.mono(), input);
    } catch (error) {
      this.#fail(error);
      return;
    }
    for (const effect of step.effects ?? []) this.#do(effect);
    this.#arm(step.next);
    if (step.dirty?.length) onDirty(step.dirty, input.type === "act" || input.type === "fold");
  }

  #arm(next: number | undefined): void {
    clearTimeout(this.#timer);
    if (next === undefined || this.#dead) return;
    const inMs = Math.max(0, Math.ceil(next - this.#options.clock.mono()));
    this.#timer = setTimeout(() => this.send({ type: "tick" }), Math.min(inMs, timerMaxMs));
  }

  #do(effect: Effect): void {
    switch (effect.do) {
      case "call":
      case "stream":
        this.#call(effect);
        return;
      case "abort":
        this.#calls.get(effect.id)?.controller.abort();
        this.#calls.delete(effect.id);
        return;
      case "respond":
        this.#requests.get(effect.id)?.answer(effect);
        return;
      case "store":
        this.#store(() => this.#options.items.set(effect.key, effect.value));
        return;
      case "remove":
        this.#store(() => this.#options.items.remove(effect.key));
        return;
      default:
        this.#options.onShown(effect);
    }
  }

  #call(effect: Extract<Effect, { do: "call" | "stream" }>): void {
    const { id, method, params } = effect;
    const overPost = effect.do === "call" && effect.post === true;
    const peer = this.#options.peer();
    if (!overPost && !peer) return; // "down" is on its way and ends this call with all the others
    const controller = new AbortController();
    const call: Call = { controller, connection: overPost ? undefined : this.#connection };
    // Only while the call is still the module's: not aborted, and not ended with its connection.
    const ifCurrent = (run: () => void): void => {
      if (this.#calls.get(id) === call) run();
    };
    const onItem = (value: unknown): void =>
      ifCurrent(() => this.send({ type: "item", id, value }));
    this.#calls.set(id, call);
    const { signal } = controller;
    const outcome =
      overPost || !peer
        ? this.#options.post(method, params, signal)
        : peer.call(method, params, { signal, ...(effect.do === "stream" ? { onItem } : {}) });
    outcome.then(
      (result) =>
        ifCurrent(() => {
          this.#calls.delete(id);
          this.send({ type: "result", id, result });
        }),
      (error) =>
        ifCurrent(() => {
          if (error instanceof ConnectionLost && !overPost) return;
          this.#calls.delete(id);
          this.send({ type: "error", id, error: callError(error) });
        }),
    );
  }

  #store(run: () => void): void {
    let failed = false;
    try {
      run();
    } catch {
      failed = true;
    }
    if (failed === this.#storageFailed) return;
    this.#storageFailed = failed;
    this.send({ type: "storage", failed });
  }

  #fail(error: unknown): void {
    // A refused input changed nothing. It is a fault of the page, so it is shown to its developer.
    if (error instanceof ModuleError && !error.dead) {
      console.error(error);
      return;
    }
    this.stop();
    this.#options.onDead(error instanceof Error ? error : new Error(String(error)));
  }
}

function errorBody(error: CallError): RpcErrorBody {
  return { code: error.code ?? -32000, message: error.message ?? "", data: error.data };
}

function callError(error: unknown): CallError {
  if (error instanceof RemoteError) {
    return { code: error.rpcCode, message: error.message, data: error.data };
  }
  if (error instanceof ConnectionLost) return { code: networkRefused, message: error.message };
  return { code: -32603, message: error instanceof Error ? error.message : String(error) };
}
