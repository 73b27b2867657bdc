// What a browser has to fetch, and what the page's policy allows, checked on the built files.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const dist = join(import.meta.dirname, "../dist");
const scriptGzipMax = 60 * 1024;
/** What comes later, when the settings are opened, and the service worker. */
const laterGzipMax = 8 * 1024;
const workerGzipMax = 4 * 1024;
const styleGzipMax = 12 * 1024;

const files = readdirSync(join(dist, "assets")).map((name) => ({
  name,
  bytes: readFileSync(join(dist, "assets", name)),
}));

/** The scripts that the page loads before it shows anything: the entry and what it imports. */
function firstScripts(): Set<string> {
  const html = readFileSync(join(dist, "index.html"), "utf8");
  const wanted = [...html.matchAll(/assets\/([\w.-]+\.js)/g)].map((match) => match[1] as string);
  const first = new Set<string>();
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (first.has(name)) continue;
    first.add(name);
    const text = files.find((file) => file.name === name)?.bytes.toString() ?? "";
    for (const match of text.matchAll(/(?:from|import)\s*["'`]\.\/([\w.-]+\.js)["'`]/g)) {
      wanted.push(match[1] as string);
    }
  }
  return first;
}

function gzipped(chosen: (name: string) => boolean): number {
  return files
    .filter(({ name }) => chosen(name))
    .reduce((sum, { bytes }) => sum + gzipSync(bytes, { level: 9 }).length, 0);
}

describe("the built page", () => {
  it("stays small", () => {
    const first = firstScripts();
    const later = gzipped((name) => name.endsWith(".js") && !first.has(name));
    expect(gzipped((name) => first.has(name))).toBeGreaterThan(0);
    expect(gzipped((name) => first.has(name))).toBeLessThanOrEqual(scriptGzipMax);
    expect(later).toBeGreaterThan(0);
    expect(later).toBeLessThanOrEqual(laterGzipMax);
    expect(gzipped((name) => name.endsWith(".css"))).toBeLessThanOrEqual(styleGzipMax);
    const worker = gzipSync(readFileSync(join(dist, "sw.js")), { level: 9 }).length;
    expect(worker).toBeLessThanOrEqual(workerGzipMax);
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

describe("the embedded inbox", () => {
  it("is one small file with its style inside, and names no other host", () => {
    const bytes = readFileSync(join(dist, "embed.js"));
    expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(scriptGzipMax);
    const text = bytes.toString();
    expect(text).not.toMatch(/\bimport\s*[("']/);
    expect(text).not.toMatch(/url\((?!["'`]?data:image)/);
  });
});

describe("the built extension", () => {
  const extension = join(import.meta.dirname, "../dist-extension");
  const walk = (dir: string): string[] =>
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  for (const name of ["chrome", "firefox"]) {
    it(`has every file that ${name}'s manifest names, the host's own module, and no inline script`, () => {
      const root = join(extension, name);
      const text = readFileSync(join(root, "manifest.json"), "utf8");
      const named = [...text.matchAll(/"([\w/.-]+\.(?:html|js|png))(?:\?\w+)?"/g)];
      expect(named.length).toBeGreaterThan(6);
      for (const [, file = ""] of named) expect(existsSync(join(root, file)), file).toBe(true);
      const module = join(import.meta.dirname, "../../wasm/bridge/module/client.wasm");
      expect(readFileSync(join(root, "client.wasm")).equals(readFileSync(module))).toBe(true);
      for (const path of walk(root)) {
        if (!path.endsWith(".html")) continue;
        const html = readFileSync(path, "utf8");
        expect(html).not.toMatch(/<style|style=|\son\w+=|(src|href)="(https?:)?\/\//);
        for (const [, body] of html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)) {
          expect(body?.trim()).toBe("");
        }
      }
    });
  }

  it("stays small", () => {
    const script = walk(join(extension, "chrome"))
      .filter((path) => path.endsWith(".js"))
      .reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0);
    expect(script).toBeLessThanOrEqual(80 * 1024);
  });
});
