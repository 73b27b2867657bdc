import { defineConfig } from "vite";
import meta from "../../package.json" with { type: "json" };

// One file, beside the page's own: the host serves it as /embed.js. It runs in pages of other
// origins, which can load no second file of ours, so everything is inside.
export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  define: { __VERSION__: JSON.stringify(meta.version) },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: {
    alias: {
      "decode-named-character-reference": new URL("../ui/entities.ts", import.meta.url).pathname,
    },
  },
  build: {
    outDir: "../../dist",
    emptyOutDir: false,
    target: "es2023",
    modulePreload: false,
    rollupOptions: {
      input: `${import.meta.dirname}/element.tsx`,
      output: { format: "es", entryFileNames: "embed.js", codeSplitting: false },
    },
  },
});
