import { defineConfig, mergeConfig } from "vite";
import base from "../../vite.config.ts";

export default mergeConfig(
  base,
  defineConfig({ server: { fs: { allow: ["../.."] }, host: "127.0.0.1", port: 5199 } }),
);
