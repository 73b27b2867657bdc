// The real module, for tests. It is built by `make build`, as everything else is.

import { existsSync, readFileSync } from "node:fs";
import { ClientModule } from "./abi.ts";
import { instantiate, type Loaded } from "./load.ts";

const path = `${import.meta.dirname}/../../../wasm/bridge/module/client.wasm`;

export function moduleBytes(): ArrayBuffer {
  if (!existsSync(path)) throw new Error("client.wasm is not built: run `make build` first");
  const file = readFileSync(path);
  const bytes = new ArrayBuffer(file.byteLength);
  new Uint8Array(bytes).set(file);
  return bytes;
}

export async function loadModule(): Promise<{ module: ClientModule; loaded: Loaded }> {
  const loaded = await instantiate(moduleBytes());
  return { module: new ClientModule(loaded), loaded };
}
