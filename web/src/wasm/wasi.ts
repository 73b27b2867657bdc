// The ten WASI imports that the module's Go runtime needs, written out by hand.
//
// The module does no I/O: time reaches it as an argument of each call, so the clock here only
// has to move forward for the runtime's own sake, and poll_oneoff has only to succeed. Memory is
// looked up at every call because a view of it dies whenever the memory grows.

const ok = 0;
const badFile = 8;

/** The runtime's last words (a panic's text) are kept up to this many characters. */
export const stderrCharsMax = 16_384;

/** Thrown out of the module when its runtime gives up. The instance must not be used again. */
export class ModuleExit extends Error {
  override name = "ModuleExit";
  readonly status: number;
  constructor(status: number, stderr: string) {
    super(`client module exited with ${status}: ${stderr.trim().slice(0, 2_000)}`);
    this.status = status;
  }
}

export interface Wasi {
  imports: WebAssembly.ModuleImports;
  /** Gives the shim its memory; called once the instance exists. */
  bind(memory: WebAssembly.Memory): void;
  stderr(): string;
}

export function createWasi(
  random: (bytes: Uint8Array<ArrayBuffer>) => void = (bytes) => {
    crypto.getRandomValues(bytes);
  },
): Wasi {
  let memory: WebAssembly.Memory | undefined;
  let ticks = 0n;
  let stderr = "";
  const decoder = new TextDecoder();

  const view = (): DataView => {
    if (!memory) throw new Error("client module called out before it had memory");
    return new DataView(memory.buffer);
  };
  const bytes = (ptr: number, len: number): Uint8Array<ArrayBuffer> =>
    new Uint8Array(view().buffer as ArrayBuffer, ptr >>> 0, len >>> 0);

  /** For args and environ alike: none. */
  const noStrings = (countPtr: number, sizePtr: number): number => {
    const v = view();
    v.setUint32(countPtr >>> 0, 0, true);
    v.setUint32(sizePtr >>> 0, 0, true);
    return ok;
  };

  return {
    bind(bound) {
      memory = bound;
    },
    stderr: () => stderr,
    imports: {
      sched_yield: () => ok,
      proc_exit: (status: number) => {
        throw new ModuleExit(status, stderr);
      },
      args_get: () => ok,
      args_sizes_get: noStrings,
      environ_get: () => ok,
      environ_sizes_get: noStrings,

      clock_time_get: (_clock: number, _precision: bigint, outPtr: number) => {
        ticks += 1_000_000n;
        view().setBigUint64(outPtr >>> 0, ticks, true);
        return ok;
      },

      fd_write: (fd: number, iovsPtr: number, iovsLen: number, writtenPtr: number) => {
        if (fd !== 1 && fd !== 2) return badFile;
        let written = 0;
        for (let i = 0; i < iovsLen; i++) {
          const v = view();
          const ptr = v.getUint32((iovsPtr >>> 0) + i * 8, true);
          const len = v.getUint32((iovsPtr >>> 0) + i * 8 + 4, true);
          if (stderr.length < stderrCharsMax) stderr += decoder.decode(bytes(ptr, len).slice());
          written += len;
        }
        view().setUint32(writtenPtr >>> 0, written, true);
        return ok;
      },

      random_get: (ptr: number, len: number) => {
        const drawn = new Uint8Array(len >>> 0);
        // getRandomValues draws at most 64 KiB at a time.
        for (let at = 0; at < drawn.length; at += 65_536) random(drawn.subarray(at, at + 65_536));
        bytes(ptr, len).set(drawn);
        return ok;
      },

      // A subscription is 48 bytes, an event 32. The runtime subscribes to a clock when it has
      // nothing to do; every subscription is reported as due at once, without an error.
      poll_oneoff: (inPtr: number, outPtr: number, count: number, eventsPtr: number) => {
        const v = view();
        for (let i = 0; i < count; i++) {
          const from = (inPtr >>> 0) + i * 48;
          const to = (outPtr >>> 0) + i * 32;
          for (let b = 0; b < 32; b += 8) v.setBigUint64(to + b, 0n, true);
          v.setBigUint64(to, v.getBigUint64(from, true), true);
          v.setUint8(to + 10, v.getUint8(from + 8));
        }
        v.setUint32(eventsPtr >>> 0, count, true);
        return ok;
      },
    },
  };
}
