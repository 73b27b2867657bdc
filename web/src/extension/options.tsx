// The options page: pairing with a host, and whether to notify.

import "../ui/style/index.css";
import "./extension.css";
import { signal } from "@preact/signals";
import { render, type VNode } from "preact";
import { useRef } from "preact/hooks";
import { revoke } from "../app/signin.ts";
import { Keys } from "../store/keys.ts";
import { stringsFor } from "../ui/strings/index.ts";
import { api } from "./api.ts";
import { Mirror } from "./mirror.ts";
import { hostKey, noticesKey, pair, readPairing, usualHost } from "./pairing.ts";
import { type Words, wordsFor } from "./words.ts";

const stored = await Mirror.open(api());
const keys = new Keys(
  () => stored,
  () => stored,
);
const s = stringsFor(keys.preferences.language, navigator.languages);
const w = wordsFor(s);
document.documentElement.lang = s.locale;
document.documentElement.dataset.theme = keys.preferences.theme;
document.title = w.pairTitle;

const pairedHost = signal<string | undefined>(
  keys.token === undefined ? undefined : (stored.getItem(hostKey) ?? undefined),
);
const trouble = signal("");
const busy = signal(false);
const notices = signal(stored.getItem(noticesKey) !== "off");

stored.onChanged(() => {
  pairedHost.value = keys.token === undefined ? undefined : (stored.getItem(hostKey) ?? undefined);
});

async function tryPairing(host: string, pasted: string): Promise<void> {
  const read = readPairing(host, pasted);
  if (typeof read === "string") {
    trouble.value = read === "host" ? w.badHost : w.noCode;
    return;
  }
  busy.value = true;
  const outcome = await pair(read.host, read.code, navigator.userAgent);
  busy.value = false;
  if ("refused" in outcome) {
    trouble.value = refusal(outcome.refused, w);
    return;
  }
  trouble.value = "";
  stored.setItem(hostKey, read.host);
  keys.token = outcome.token;
  pairedHost.value = read.host;
}

function refusal(why: "unreachable" | "bad-code" | "too-many" | "odd", words: Words): string {
  switch (why) {
    case "unreachable":
      return words.unreachable;
    case "bad-code":
      return words.badCode;
    case "too-many":
      return words.tooMany;
    case "odd":
      return words.odd;
  }
}

function unpair(): void {
  const { token } = keys;
  if (token !== undefined) revoke(token, window, pairedHost.value);
  keys.token = undefined;
  pairedHost.value = undefined;
}

function Options(): VNode {
  return (
    <main class="options">
      <p class="brand">Meanwhile</p>
      <h1>{w.pairTitle}</h1>
      <p>{w.pairIntro}</p>
      {pairedHost.value === undefined ? <Pairing /> : <Done host={pairedHost.value} />}
      <label class="setting">
        <span>
          {w.notices}
          <span class="faint">{w.noticesHint}</span>
        </span>
        <input
          type="checkbox"
          checked={notices.value}
          onChange={(event) => {
            notices.value = event.currentTarget.checked;
            stored.setItem(noticesKey, notices.value ? "on" : "off");
          }}
        />
      </label>
    </main>
  );
}

function Done({ host }: { host: string }): VNode {
  return (
    <p class="setting" data-paired>
      <span role="status">{w.pairedWith(host)}</span>
      <button type="button" class="quiet" onClick={unpair}>
        {w.unpair}
      </button>
    </p>
  );
}

function Pairing(): VNode {
  const host = useRef<HTMLInputElement>(null);
  const code = useRef<HTMLInputElement>(null);
  const { origin } = location;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void tryPairing(host.current?.value ?? "", code.current?.value ?? "");
      }}
    >
      <ol>
        <li>
          <p>{w.stepAllow}</p>
          <pre translate={false} data-origin>{`meanwhile serve --origin ${origin}`}</pre>
          <pre translate={false}>{`[http]\norigins = ["${origin}"]`}</pre>
        </li>
        <li>
          <p>{w.stepCode}</p>
          <pre translate={false}>meanwhile login</pre>
          <label>
            <span>{w.hostAddress}</span>
            <input ref={host} type="text" dir="ltr" spellcheck={false} defaultValue={usualHost} />
          </label>
          <label>
            <span>{w.code}</span>
            <input ref={code} type="text" dir="ltr" spellcheck={false} autocomplete="off" />
          </label>
        </li>
      </ol>
      {trouble.value && (
        <p class="note note-refused" role="alert">
          {trouble.value}
        </p>
      )}
      <button type="submit" class="primary" disabled={busy.value}>
        {w.pair}
      </button>
    </form>
  );
}

render(<Options />, document.getElementById("root") as HTMLElement);
