import "../ui/style/index.css";
import { render } from "preact";
import { Keys } from "../store/keys.ts";
import { Root } from "../ui/frame.tsx";
import { ClientModule } from "../wasm/abi.ts";
import { fetchModule, instantiate } from "../wasm/load.ts";
import { App } from "./app.ts";
import { takeCode } from "./signin.ts";
import { startWorker } from "./worker.ts";

/** Where the host serves the module before a connection can say so. */
const modulePath = "/client.wasm";

function draw(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

const code = takeCode(location, history);
let bytes: Promise<ArrayBuffer> | undefined;

const app = new App({
  clock: { wall: () => Date.now(), mono: () => Math.floor(performance.now()) },
  keys: new Keys(
    () => localStorage,
    () => sessionStorage,
  ),
  machine: async () => {
    bytes ??= fetchModule(modulePath);
    const loaded = await instantiate(await bytes);
    return { machine: new ClientModule(loaded), sha256: loaded.sha256 };
  },
  draw,
  version: __VERSION__,
  window,
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has lost its root");
render(<Root app={app} />, root);
startWorker(app, window);
await app.start();
if (code !== undefined) await app.signInWith(code);
