// The part of the parity test that runs in the browser: the page's own loader and abi.

import { ClientModule } from "../src/wasm/abi.ts";
import { fetchModule, instantiate } from "../src/wasm/load.ts";

export interface Exchange {
  call: "step" | "view" | "check" | "fold";
  wall?: number;
  mono?: number;
  in: string;
  out: string;
}

export interface Difference {
  at: number;
  got: string;
  want: string;
}

/** Replays one transcript on a new instance and returns the first answer that differs. */
export async function replay(exchanges: readonly Exchange[]): Promise<Difference | undefined> {
  const module = new ClientModule(await instantiate(await fetchModule("/client.wasm")));
  for (const [at, { call, wall = 0, mono = 0, in: input, out: want }] of exchanges.entries()) {
    const got = module.raw(call, input, wall, mono);
    if (got !== want) return { at, got, want };
  }
  return undefined;
}
