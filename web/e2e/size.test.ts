// What a browser has to fetch, and what the page's policy allows, checked on the built files.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const dist = join(import.meta.dirname, "../dist");
const scriptGzipMax = 60 * 1024;
const styleGzipMax = 12 * 1024;

const files = readdirSync(join(dist, "assets")).map((name) => ({
  name,
  bytes: readFileSync(join(dist, "assets", name)),
}));

function gzipped(ending: string): number {
  return files
    .filter(({ name }) => name.endsWith(ending))
    .reduce((sum, { bytes }) => sum + gzipSync(bytes, { level: 9 }).length, 0);
}

describe("the built page", () => {
  it("stays small", () => {
    expect(gzipped(".js")).toBeGreaterThan(0);
    expect(gzipped(".js")).toBeLessThanOrEqual(scriptGzipMax);
    expect(gzipped(".css")).toBeLessThanOrEqual(styleGzipMax);
  });

  it("holds no inline script, no inline style and no address of another host", () => {
    const html = readFileSync(join(dist, "index.html"), "utf8");
    for (const [, attributes, body] of html.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)) {
      expect(attributes).toContain("src=");
      expect(body?.trim()).toBe("");
    }
    expect(html).not.toMatch(/<style|style=|\son\w+=/);
    expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
    for (const { name, bytes } of files) {
      if (name.endsWith(".css")) expect(bytes.toString()).not.toMatch(/url\((?!["']?data:image)/);
    }
  });
});
