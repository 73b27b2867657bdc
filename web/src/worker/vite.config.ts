import { defineConfig } from "vite";

// One classic script at the root, or the worker would not control the page: the host serves it as
// /sw.js, never from a cache.
export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  build: {
    outDir: "../../dist",
    emptyOutDir: false,
    target: "es2023",
    modulePreload: false,
    rollupOptions: {
      input: `${import.meta.dirname}/sw.ts`,
      output: { format: "iife", entryFileNames: "sw.js", codeSplitting: false },
    },
  },
});
