import { copyFileSync, cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";
import meta from "../../package.json" with { type: "json" };
import { manifest } from "./manifest.ts";

const here = import.meta.dirname;
const out = join(here, "../../dist-extension");
const module = join(here, "../../../wasm/bridge/module/client.wasm");

// Built once; the two browsers get the same files and a manifest each.
export default defineConfig({
  root: here,
  base: "./",
  publicDir: false,
  define: { __VERSION__: JSON.stringify(meta.version) },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: {
    alias: { "decode-named-character-reference": join(here, "../ui/entities.ts") },
  },
  build: {
    outDir: join(out, "chrome"),
    emptyOutDir: true,
    target: ["chrome123", "firefox128"],
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      input: {
        view: join(here, "view.html"),
        options: join(here, "options.html"),
        background: join(here, "background.ts"),
      },
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  plugins: [
    {
      name: "two browsers",
      closeBundle() {
        if (!existsSync(module))
          throw new Error("client.wasm is not built: run `make build` first");
        const chrome = join(out, "chrome");
        const firefox = join(out, "firefox");
        copyFileSync(module, join(chrome, "client.wasm"));
        cpSync(join(here, "icons"), join(chrome, "icons"), { recursive: true });
        mkdirSync(firefox, { recursive: true });
        cpSync(chrome, firefox, { recursive: true });
        for (const [browser, dir] of [
          ["chrome", chrome],
          ["firefox", firefox],
        ] as const) {
          const text = `${JSON.stringify(manifest(browser, meta.version), null, 2)}\n`;
          writeFileSync(join(dir, "manifest.json"), text);
        }
      },
    },
  ],
});
