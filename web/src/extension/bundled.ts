// The module that came with the extension. It stays while the host speaks the same protocol, also
// when the host brings another build.

import { ClientModule } from "../wasm/abi.ts";
import { fetchModule, instantiate } from "../wasm/load.ts";
import { api } from "./api.ts";

export async function loadBundled(): Promise<{ machine: ClientModule; sha256: string }> {
  const loaded = await instantiate(await fetchModule(api().runtime.getURL("client.wasm")));
  return { machine: new ClientModule(loaded), sha256: loaded.sha256 };
}

/** 32 random hex digits. */
export function draw(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
