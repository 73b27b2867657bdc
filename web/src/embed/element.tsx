// <meanwhile-inbox host="http://127.0.0.1:7331">: the inbox inside another page.
//
// The host must list that page's origin (http.origins). The element keeps its token in the page's
// storage, so the page is trusted with it: it could answer for the person. It is for pages of one's
// own. Everything drawn is in a closed part of the page, a shadow tree, whose style neither leaks
// out nor in. Its attributes: host, the host's origin; theme, "light" or "dark".
//
// States: absent → starting (attached to a page) → running; taken out of the page it stops, put
// back it starts anew, with its drafts.

import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "../app/app.ts";
import { Keys } from "../store/keys.ts";
import { ClientModule } from "../wasm/abi.ts";
import { fetchModule, instantiate } from "../wasm/load.ts";
import { Compact } from "./compact.tsx";
import own from "./element.css?inline";
import style from "./index.css?inline";
import { place } from "./place.ts";
import { scoped } from "./scope.ts";
import { PartOfStorage } from "./storage.ts";

const tag = "meanwhile-inbox";

class MeanwhileInbox extends HTMLElement {
  static observedAttributes = ["host", "theme"];
  #running: AbortController | undefined;
  #app: App | undefined;

  connectedCallback(): void {
    this.#restart();
  }

  disconnectedCallback(): void {
    this.#stop();
  }

  attributeChangedCallback(name: string): void {
    if (name === "host" && this.isConnected) this.#restart();
    if (name === "theme") this.#paint();
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#app?.stop();
    this.#app = undefined;
    if (this.shadowRoot) render(null, rootOf(this.shadowRoot));
  }

  #restart(): void {
    this.#stop();
    const shadow = this.shadowRoot ?? this.#draw();
    const root = rootOf(shadow);
    const base = originOf(this.getAttribute("host"));
    if (base === undefined) {
      root.textContent = `<${tag}> needs host="http://127.0.0.1:7331", the address of Meanwhile.`;
      return;
    }
    root.textContent = "";
    const running = new AbortController();
    this.#running = running;
    const storagePrefix = `meanwhile ${base} `;
    let bytes: Promise<ArrayBuffer> | undefined;
    const app = new App({
      base,
      name: "embed",
      reloads: false,
      clock: { wall: () => Date.now(), mono: () => Math.floor(performance.now()) },
      keys: new Keys(
        () => new PartOfStorage(localStorage, storagePrefix),
        () => new PartOfStorage(sessionStorage, storagePrefix),
      ),
      machine: async () => {
        bytes ??= fetchModule(`${base}/client.wasm`);
        try {
          const loaded = await instantiate(await bytes);
          return { machine: new ClientModule(loaded), sha256: loaded.sha256 };
        } catch (error) {
          bytes = undefined;
          throw error;
        }
      },
      draw,
      version: __VERSION__,
      window: place(window, { base, storagePrefix, signal: running.signal }),
    });
    this.#app = app;
    const unsubscribe = effect(() => {
      app.preferences.value;
      root.lang = app.strings.value.locale;
      this.#paint();
    });
    running.signal.addEventListener("abort", unsubscribe);
    render(<Compact app={app} base={base} />, root);
    void app.start().then(() => {
      // Taken out of the page while the module was loading.
      if (running.signal.aborted) app.stop();
    });
  }

  #paint(): void {
    const theme = this.getAttribute("theme") ?? this.#app?.preferences.value.theme ?? "auto";
    this.dataset.theme = theme === "light" || theme === "dark" ? theme : "auto";
  }

  #draw(): ShadowRoot {
    const shadow = this.attachShadow({ mode: "open", delegatesFocus: false });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(scoped(style) + own);
    shadow.adoptedStyleSheets = [sheet];
    const root = document.createElement("div");
    root.className = "mw-root";
    shadow.append(root);
    return shadow;
  }
}

function rootOf(shadow: ShadowRoot): HTMLElement {
  return shadow.querySelector(".mw-root") as HTMLElement;
}

function originOf(text: string | null): string | undefined {
  try {
    const url = new URL(text ?? "");
    return url.protocol === "http:" || url.protocol === "https:" ? url.origin : undefined;
  } catch {
    return undefined;
  }
}

function draw(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// A property registered inside a shadow tree counts for nothing; the ring needs its number to turn.
try {
  CSS.registerProperty({ name: "--turn", syntax: "<number>", inherits: false, initialValue: "1" });
} catch {
  // Registered already, by a second copy of this file.
}
if (!customElements.get(tag)) customElements.define(tag, MeanwhileInbox);
