// Measures module and page in Chromium for `make bench`, which gives the log and takes the figures.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { describe, expect, it } from "vitest";
import type { Figures } from "./bench-page.ts";
import { Device, launch } from "./browser.ts";
import { Host } from "./host.ts";
import { script } from "./script.ts";

const log = process.env.BENCH_LOG ?? "";
const out = process.env.BENCH_OUT ?? "";
const check = JSON.stringify({
  check: "answer",
  questions: [
    { id: "q", question: "Which?", options: [{ label: "The first" }, { label: "The second" }] },
  ],
  answer: { answers: [{ id: "q", selected: ["The first"] }] },
});

async function bundle(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      minify: false,
      lib: {
        entry: join(import.meta.dirname, "bench-page.ts"),
        formats: ["iife"],
        name: "bench",
      },
    },
  });
  const [first] = Array.isArray(built) ? built : [built];
  if (!first || !("output" in first)) throw new Error("nothing was built");
  return `${first.output[0].code}\nglobalThis.bench = bench; undefined;`;
}

describe.skipIf(!log)("the figures of make bench", () => {
  it("are taken", async () => {
    const host = await Host.start({ script: script() });
    const browser = await launch();
    try {
      const device = await Device.open(browser, host);
      const start = performance.now();
      await device.page.reload();
      await device.page.locator(".rail").waitFor();
      const pageMs = performance.now() - start;
      await device.page.evaluate(await bundle());
      const figures = await device.page.evaluate(
        ([text, input]) =>
          (
            globalThis as unknown as {
              bench: { measure(log: string, check: string): Promise<Figures> };
            }
          ).bench.measure(text, input),
        [readFileSync(log, "utf8"), check] as const,
      );
      expect(figures.eventsPerSecond).toBeGreaterThan(0);
      writeFileSync(out, JSON.stringify({ ...figures, pageMs }));
    } finally {
      await browser.close();
      await host.stop();
    }
  }, 120_000);
});
