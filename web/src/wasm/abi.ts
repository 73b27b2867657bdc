// Twin of wasm/client/abi: how bytes go into client.wasm and come out.
//
// One input buffer, owned by the module: alloc(n) gives its address, the page writes UTF-8 JSON
// there and calls. An answer is ptr<<32|len, valid until the next call, so it is copied out at
// once. Addresses arrive as signed 32-bit numbers (`>>> 0`), and every view of memory dies when
// the memory grows, so none is kept.

import type { ModuleErrorBody, Step } from "../protocol/step.ts";
import type { ViewRequest } from "../protocol/view.ts";
import type { Loaded } from "./load.ts";

export const abiVersion = 1;

type Alloc = (n: number) => number;
type Timed = (wall: bigint, mono: bigint, ptr: number, len: number) => bigint;
type Plain = (ptr: number, len: number) => bigint;

/** The module refused an input. `dead` means that the instance must be thrown away. */
export class ModuleError extends Error {
  override name = "ModuleError";
  readonly code: string;
  readonly dead: boolean;
  constructor(code: string, message: string, dead: boolean) {
    super(`${code}: ${message}`);
    this.code = code;
    this.dead = dead;
  }
}

export class ClientModule {
  readonly #memory: WebAssembly.Memory;
  readonly #alloc: Alloc;
  readonly #step: Timed;
  readonly #view: Timed;
  readonly #check: Plain;
  readonly #fold: Plain;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #dead = false;

  constructor({ exports, memory }: Pick<Loaded, "exports" | "memory">) {
    const abi = entry<() => number>(exports, "abi")();
    if (abi !== abiVersion) throw new Error(`client module speaks abi ${abi}, not ${abiVersion}`);
    this.#memory = memory;
    this.#alloc = entry(exports, "alloc");
    this.#step = entry(exports, "step");
    this.#view = entry(exports, "view");
    this.#check = entry(exports, "check");
    this.#fold = entry(exports, "fold");
  }

  get dead(): boolean {
    return this.#dead;
  }

  step(wall: number, mono: number, input: unknown): Step {
    return this.#timed(this.#step, wall, mono, encode(input)) as Step;
  }

  /** Changes nothing in the module. `{}` stands for "there is none". */
  view(wall: number, mono: number, request: ViewRequest): unknown {
    return this.#timed(this.#view, wall, mono, encode(request));
  }

  check(document: unknown): unknown {
    return this.#plain(this.#check, encode(document));
  }

  /** `lines` is JSON lines: the view's name, the header, then events. */
  fold(lines: string): unknown {
    return this.#plain(this.#fold, lines);
  }

  /** One call as text in and text out, for comparing the module's bytes across runtimes. */
  raw(name: "step" | "view" | "check" | "fold", text: string, wall = 0, mono = 0): string {
    if (name === "step" || name === "view") {
      const call = name === "step" ? this.#step : this.#view;
      return this.#run(text, (ptr, len) => call(bigMs(wall), bigMs(mono), ptr, len));
    }
    return this.#run(text, name === "check" ? this.#check : this.#fold);
  }

  #timed(call: Timed, wall: number, mono: number, text: string): unknown {
    return answerOf(
      this.#run(text, (ptr, len) => call(bigMs(wall), bigMs(mono), ptr, len)),
      () => this.#die(),
    );
  }

  #plain(call: Plain, text: string): unknown {
    return answerOf(this.#run(text, call), () => this.#die());
  }

  #run(text: string, call: Plain): string {
    if (this.#dead) throw new ModuleError("TRAP", "the instance has stopped", true);
    const bytes = this.#encoder.encode(text);
    try {
      const ptr = this.#alloc(bytes.length) >>> 0;
      if (ptr === 0)
        throw new ModuleError("TOO_LARGE", "input larger than the module takes", false);
      new Uint8Array(this.#memory.buffer, ptr, bytes.length).set(bytes);
      const packed = BigInt.asUintN(64, call(ptr, bytes.length));
      const at = Number(packed >> 32n);
      const len = Number(packed & 0xffff_ffffn);
      // The copy is made by decoding: the next call may write over the answer.
      return this.#decoder.decode(new Uint8Array(this.#memory.buffer, at, len));
    } catch (error) {
      if (error instanceof ModuleError) throw error;
      this.#die();
      throw new ModuleError("TRAP", error instanceof Error ? error.message : String(error), true);
    }
  }

  #die(): void {
    this.#dead = true;
  }
}

/**
 * JSON of well-formed Unicode. Half a surrogate pair, which a text field can hold, has no UTF-8 and
 * would be refused with the whole input; it becomes U+FFFD. JSON.stringify escapes nothing else so.
 */
function encode(document: unknown): string {
  const text = JSON.stringify(document);
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(document, (_, value) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
}

function answerOf(text: string, die: () => void): unknown {
  const doc: unknown = JSON.parse(text);
  const error = errorOf(doc);
  if (!error) return doc;
  const dead = error.code === "TRAP";
  if (dead) die();
  throw new ModuleError(error.code, error.message, dead);
}

/** A failed call answers with `error` and nothing else. A transcript view has an `error` too, a text. */
function errorOf(doc: unknown): ModuleErrorBody | undefined {
  if (typeof doc !== "object" || doc === null || !("error" in doc)) return undefined;
  const error = doc.error;
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  const { code } = error;
  const message = "message" in error ? error.message : "";
  if (typeof code !== "string") return undefined;
  return { code, message: typeof message === "string" ? message : "" };
}

function bigMs(ms: number): bigint {
  return BigInt(Math.floor(ms));
}

function entry<F>(exports: WebAssembly.Exports, name: string): F {
  const found = exports[name];
  if (typeof found !== "function") throw new Error(`client module lacks the export ${name}`);
  return found as F;
}
