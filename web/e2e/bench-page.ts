// The part of the measurements that runs in the browser: the page's own loader and abi.

import { ClientModule } from "../src/wasm/abi.ts";
import { fetchModule, instantiate } from "../src/wasm/load.ts";

export interface Figures {
  eventsPerSecond: number;
  checksPerSecond: number;
  moduleMs: number;
}

/** Repeats one call for a second and returns how often it ran in one. */
function rate(module: ClientModule, call: "fold" | "check", input: string): number {
  const fault = /"(error|problem)"/.exec(module.raw(call, input, 0, 0));
  if (fault) throw new Error(`${call} answers with ${fault[0]}`);
  const start = performance.now();
  let times = 0;
  do {
    module.raw(call, input, 0, 0);
    times++;
  } while (performance.now() - start < 1000);
  return (times * 1000) / (performance.now() - start);
}

export async function measure(log: string, check: string): Promise<Figures> {
  const bytes = await fetchModule("/client.wasm");
  const start = performance.now();
  const module = new ClientModule(await instantiate(bytes));
  const moduleMs = performance.now() - start;
  const events = log.trimEnd().split("\n").length - 1;
  const fold = `{"view":"userQuestions"}\n${log}`;
  return {
    eventsPerSecond: events * rate(module, "fold", fold),
    checksPerSecond: rate(module, "check", check),
    moduleMs,
  };
}
