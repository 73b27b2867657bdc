// Fetches, compiles and starts client.wasm in the page.

import { createWasi, type Wasi } from "./wasi.ts";

/** The module is about 2 MB; anything far beyond is not ours. */
export const moduleBytesMax = 32 << 20;

export interface Loaded {
  exports: WebAssembly.Exports;
  memory: WebAssembly.Memory;
  wasi: Wasi;
  sha256: string;
}

export async function fetchModule(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  const response = await fetch(path, signal ? { signal } : {});
  if (!response.ok) throw new Error(`client module: HTTP ${response.status} for ${path}`);
  const bytes = await response.arrayBuffer();
  if (bytes.byteLength > moduleBytesMax) throw new Error("client module: larger than its limit");
  return bytes;
}

export async function instantiate(bytes: BufferSource & ArrayBuffer): Promise<Loaded> {
  const [module, sha256] = await Promise.all([WebAssembly.compile(bytes), digest(bytes)]);
  const wasi = createWasi();
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (from !== "wasi_snapshot_preview1" || kind !== "function" || !(name in wasi.imports)) {
      throw new Error(`client module wants ${from}.${name}, which the page does not offer`);
    }
  }
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.imports });
  const { memory, _initialize: initialize } = instance.exports;
  if (!(memory instanceof WebAssembly.Memory)) throw new Error("client module has no memory");
  if (typeof initialize !== "function") throw new Error("client module is not a reactor");
  wasi.bind(memory);
  initialize();
  return { exports: instance.exports, memory, wasi, sha256 };
}

/** Lower-case hex, or empty where the page runs without a secure context and has no digest. */
async function digest(bytes: ArrayBuffer): Promise<string> {
  if (!globalThis.crypto?.subtle) return "";
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (b) => b.toString(16).padStart(2, "0")).join("");
}
