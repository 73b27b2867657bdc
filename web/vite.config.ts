import { defineConfig } from "vitest/config";
import meta from "./package.json" with { type: "json" };

// The page is served under a policy that allows neither inline script nor inline style, and
// no host but its own. So nothing may be inlined: no module preload polyfill, no data: URLs.
export default defineConfig({
  base: "/",
  define: { __VERSION__: JSON.stringify(meta.version) },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: {
    alias: {
      "decode-named-character-reference": new URL("./src/ui/entities.ts", import.meta.url).pathname,
    },
  },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.ts", "src/**/*.test.tsx"],
    restoreMocks: true,
    // The checks share a machine with builds; none of these tests waits for real time.
    testTimeout: 20_000,
  },
});
