// Every state of the page on one screen, over an in-memory host: `npm run gallery`, then open
// /e2e/gallery/. For eyes only; nothing is tested here.

import "../../src/ui/style/index.css";
import { render } from "preact";
import moduleUrl from "../../../wasm/bridge/module/client.wasm?url";
import { App } from "../../src/app/app.ts";
import { FakeHost } from "../../src/app/fakehost.ts";
import { Keys } from "../../src/store/keys.ts";
import { Root } from "../../src/ui/frame.tsx";
import { ClientModule } from "../../src/wasm/abi.ts";
import { instantiate } from "../../src/wasm/load.ts";
import * as data from "./data.ts";

const draw = () => crypto.randomUUID().replaceAll("-", "");
const host = new FakeHost();
host.sessions.push(...data.sessions);
host.answers.set("session/follow", (params) => data.follow(String(params.sessionId)));

localStorage.setItem("meanwhile/token", "gallery");
const app = new App({
  clock: { wall: () => Date.now(), mono: () => Math.floor(performance.now()) },
  keys: new Keys(
    () => localStorage,
    () => sessionStorage,
  ),
  machine: async () => {
    const response = await fetch(moduleUrl);
    const loaded = await instantiate(await response.arrayBuffer());
    host.sha256 = loaded.sha256;
    return { machine: new ClientModule(loaded), sha256: loaded.sha256 };
  },
  draw,
  version: "gallery",
  window,
  openSocket: host.open,
});
const root = document.getElementById("root");
if (!root) throw new Error("no root");
render(<Root app={app} />, root);
await app.start();
await new Promise((resolve) => setTimeout(resolve, 300));
if (!location.search.includes("empty")) {
  for (const { eventId, sessionId, request, claimMs } of data.requests) {
    host.claimMs = claimMs;
    host.request(eventId, sessionId, request).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
}
Object.assign(window, { app, host });
