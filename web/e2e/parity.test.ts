// The same transcripts that run natively and under wazero, in the browser: byte for byte.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch } from "./browser.ts";
import { Host } from "./host.ts";
import type { Difference, Exchange } from "./parity-page.ts";
import { script } from "./script.ts";

const testdata = join(import.meta.dirname, "../../wasm/bridge/paritytest/testdata");
const suffix = ".expected.json";
const names = readdirSync(testdata)
  .filter((name) => name.endsWith(suffix))
  .map((name) => name.slice(0, -suffix.length));

let browser: Browser;
let host: Host;
let page: Page;

beforeAll(async () => {
  host = await Host.start({ script: script() });
  browser = await launch();
  page = await browser.newPage();
  await page.goto(host.url);
  await page.evaluate(await bundle());
});

afterAll(async () => {
  await browser.close();
  await host.stop();
});

async function bundle(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      minify: false,
      lib: {
        entry: join(import.meta.dirname, "parity-page.ts"),
        formats: ["iife"],
        name: "parity",
      },
    },
  });
  const [first] = Array.isArray(built) ? built : [built];
  if (!first || !("output" in first)) throw new Error("nothing was built");
  return `${first.output[0].code}\nglobalThis.parity = parity; undefined;`;
}

describe("client.wasm in the browser", () => {
  it("has transcripts to follow", () => {
    expect(names).toEqual(expect.arrayContaining(["cards", "countdown", "projection"]));
  });

  for (const name of names) {
    it(`answers ${name} byte for byte`, async () => {
      const exchanges: Exchange[] = JSON.parse(readFileSync(join(testdata, name + suffix), "utf8"));
      expect(exchanges.length).toBeGreaterThan(0);
      const difference = await page.evaluate(
        (list) =>
          (
            globalThis as unknown as {
              parity: { replay(list: Exchange[]): Promise<Difference | undefined> };
            }
          ).parity.replay(list),
        exchanges,
      );
      expect(difference).toBeUndefined();
    });
  }

  it("tells a difference when there is one", async () => {
    const exchange: Exchange = { call: "check", in: '{"check":"nothing"}', out: "{}" };
    const difference = await page.evaluate(
      (list) =>
        (
          globalThis as unknown as {
            parity: { replay(list: Exchange[]): Promise<Difference | undefined> };
          }
        ).parity.replay(list),
      [exchange],
    );
    expect(difference).toMatchObject({ at: 0, want: "{}" });
  });
});
