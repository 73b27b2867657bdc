import { describe, expect, it } from "vitest";
import { createWasi, ModuleExit, stderrCharsMax } from "./wasi.ts";

type Import = (...args: (number | bigint)[]) => number;

function setup() {
  const memory = new WebAssembly.Memory({ initial: 2 });
  const wasi = createWasi((bytes) => bytes.fill(7));
  wasi.bind(memory);
  const call = (name: string, ...args: (number | bigint)[]) =>
    (wasi.imports[name] as Import)(...args);
  const view = () => new DataView(memory.buffer);
  const bytes = (at: number, len: number) => [...new Uint8Array(memory.buffer, at, len)];
  return { memory, wasi, call, view, bytes };
}

describe("the WASI shim", () => {
  it("offers exactly the ten imports the runtime needs", () => {
    expect(Object.keys(createWasi().imports).sort()).toEqual([
      "args_get",
      "args_sizes_get",
      "clock_time_get",
      "environ_get",
      "environ_sizes_get",
      "fd_write",
      "poll_oneoff",
      "proc_exit",
      "random_get",
      "sched_yield",
    ]);
  });

  it("has no arguments and no environment", () => {
    const { call, view } = setup();
    view().setUint32(0, 9, true);
    view().setUint32(4, 9, true);
    expect(call("args_sizes_get", 0, 4)).toBe(0);
    expect([view().getUint32(0, true), view().getUint32(4, true)]).toEqual([0, 0]);
  });

  it("has a clock that only moves forward", () => {
    const { call, view } = setup();
    let last = -1n;
    for (let i = 0; i < 5; i++) {
      call("clock_time_get", 1, 0n, 8);
      const now = view().getBigUint64(8, true);
      expect(now > last).toBe(true);
      last = now;
    }
  });

  it("draws random bytes into the memory, also more than the browser gives at once", () => {
    const { call, bytes } = setup();
    expect(call("random_get", 16, 4)).toBe(0);
    expect(bytes(15, 6)).toEqual([0, 7, 7, 7, 7, 0]);
    expect(call("random_get", 0, 70_000)).toBe(0);
    expect(bytes(69_999, 2)).toEqual([7, 0]);
  });

  it("keeps what the runtime writes, up to its limit, and refuses other files", () => {
    const { wasi, call, view, memory } = setup();
    new Uint8Array(memory.buffer).set(new TextEncoder().encode("panic: x"), 100);
    view().setUint32(0, 100, true);
    view().setUint32(4, 8, true);
    expect(call("fd_write", 2, 0, 1, 50)).toBe(0);
    expect([view().getUint32(50, true), wasi.stderr()]).toEqual([8, "panic: x"]);
    expect(call("fd_write", 3, 0, 1, 50)).not.toBe(0);
    for (let i = 0; i < 4_000; i++) call("fd_write", 2, 0, 1, 50);
    expect(wasi.stderr().length).toBeLessThan(stderrCharsMax + 8);
  });

  it("reports every subscription as due, with its own user data and no error", () => {
    const { call, view } = setup();
    for (let i = 0; i < 2; i++) {
      view().setBigUint64(48 * i, 0xabcn + BigInt(i), true);
      view().setUint8(48 * i + 8, i);
    }
    new Uint8Array(view().buffer, 200, 64).fill(255);
    expect(call("poll_oneoff", 0, 200, 2, 400)).toBe(0);
    expect(view().getUint32(400, true)).toBe(2);
    for (let i = 0; i < 2; i++) {
      expect(view().getBigUint64(200 + 32 * i, true)).toBe(0xabcn + BigInt(i));
      expect(view().getUint16(200 + 32 * i + 8, true)).toBe(0);
      expect(view().getUint8(200 + 32 * i + 10)).toBe(i);
    }
  });

  it("works after the memory has grown, and with addresses above 2 GiB as signed numbers", () => {
    const { call, memory, view } = setup();
    memory.grow(1);
    expect(call("clock_time_get", 0, 0n, 3 * 65_536 - 8)).toBe(0);
    expect(view().getBigUint64(3 * 65_536 - 8, true)).toBeGreaterThan(0n);
    // A negative number is an address beyond this memory: a range error, not a write elsewhere.
    expect(() => call("clock_time_get", 0, 0n, -8)).toThrow(RangeError);
  });

  it("turns an exit into an error that carries the last words", () => {
    const { call } = setup();
    expect(() => call("proc_exit", 2)).toThrow(ModuleExit);
  });
});
