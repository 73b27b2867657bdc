// Popup and side panel: the same inbox, in a small window and beside a page.

import "../ui/style/index.css";
import "../embed/compact.css";
import "./extension.css";
import { effect } from "@preact/signals";
import { render, type VNode } from "preact";
import { App } from "../app/app.ts";
import { Compact } from "../embed/compact.tsx";
import { Keys } from "../store/keys.ts";
import { Icon } from "../ui/icons.tsx";
import type { Strings } from "../ui/strings/index.ts";
import { api } from "./api.ts";
import { draw, loadBundled } from "./bundled.ts";
import { Mirror } from "./mirror.ts";
import { hostKey, usualHost } from "./pairing.ts";
import { wordsFor } from "./words.ts";

const browser = api();
const popup = location.search === "?popup";
document.documentElement.classList.toggle("popup", popup);

const stored = await Mirror.open(browser);
const base = stored.getItem(hostKey) ?? usualHost;
const app = new App({
  base,
  name: popup ? "popup" : "panel",
  reloads: false,
  clock: { wall: () => Date.now(), mono: () => Math.floor(performance.now()) },
  keys: new Keys(
    () => stored,
    () => sessionStorage,
  ),
  machine: loadBundled,
  draw,
  version: __VERSION__,
  window,
});

// The shared storage speaks as localStorage does to the page's other tabs.
stored.onChanged((key, newValue) => {
  window.dispatchEvent(new StorageEvent("storage", { key, newValue }));
  if (key === hostKey || key === "meanwhile/token") location.reload();
});

effect(() => {
  document.documentElement.lang = app.strings.value.locale;
  document.documentElement.dataset.theme = app.preferences.value.theme;
});

function Unpaired({ strings }: { strings: Strings }): VNode {
  const w = wordsFor(strings);
  return (
    <main class="unpaired">
      <p class="brand">Meanwhile</p>
      <p>{w.pairFirst}</p>
      <button type="button" class="primary" onClick={() => void browser.runtime.openOptionsPage()}>
        {w.pairOpen}
      </button>
    </main>
  );
}

function View(): VNode {
  const strings = app.strings.value;
  const title = wordsFor(strings).settings;
  return (
    <Compact
      app={app}
      base={base}
      signedOut={<Unpaired strings={strings} />}
      actions={
        <button
          type="button"
          class="icon-button"
          title={title}
          aria-label={title}
          onClick={() => void browser.runtime.openOptionsPage()}
        >
          <Icon name="settings" />
        </button>
      }
    />
  );
}

render(<View />, document.getElementById("root") as HTMLElement);
await app.start();
