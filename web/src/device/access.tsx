// A link for the phone, and who has access.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isObject } from "../rpc/frame.ts";
import { useApp, useStrings } from "../ui/context.ts";
import { wordsFor } from "./words.ts";

/** The free margin that a camera wants, in modules. */
const margin = 4;

interface Login {
  url: string;
  qr?: { size: number; path: string };
}

export function PhoneSettings(): VNode {
  const app = useApp();
  const w = wordsFor(useStrings());
  const [login, setLogin] = useState<Login | undefined>();

  const show = async (): Promise<void> => {
    const result = await app.call("login/create", {}).catch(() => undefined);
    if (isObject(result) && typeof result.url === "string") setLogin(result as unknown as Login);
  };
  const local =
    login !== undefined && /^(localhost|127\.|\[::1\])/.test(new URL(login.url).hostname);

  return (
    <section class="setting device">
      <h2>{w.phone}</h2>
      <p class="faint">
        {w.phoneHint} {w.plainText}
      </p>
      {login && (
        <div class="login">
          {login.qr && <Drawing {...login.qr} label={w.qr} />}
          <input type="text" readOnly dir="ltr" value={login.url} aria-label={w.phone} />
          {local && (
            <p class="note" role="alert">
              {w.localOnly}
            </p>
          )}
        </div>
      )}
      <button type="button" class="quiet" data-act="login" onClick={() => void show()}>
        {login ? w.newLink : w.showLink}
      </button>
    </section>
  );
}

function Drawing(props: { size: number; path: string; label: string }): VNode {
  const side = props.size + 2 * margin;
  return (
    <svg
      class="qr"
      role="img"
      aria-label={props.label}
      viewBox={`${-margin} ${-margin} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-margin} y={-margin} width={side} height={side} fill="#fff" />
      <path d={props.path} fill="#000" />
    </svg>
  );
}

interface Token {
  id: string;
  label: string;
  scopes: string[];
  createdAt: number;
}

export function TokenSettings(): VNode {
  const app = useApp();
  const s = useStrings();
  const w = wordsFor(s);
  const [tokens, setTokens] = useState<Token[]>([]);
  const [asked, setAsked] = useState<string | undefined>();
  const online = app.link.value.state === "online";
  const own = app.token?.split("_")[1];

  const load = async (): Promise<void> => {
    const result = await app.call("token/list", {}).catch(() => undefined);
    if (isObject(result) && Array.isArray(result.tokens)) setTokens(result.tokens as Token[]);
  };
  useEffect(() => {
    if (online) void load();
  }, [online]);

  const revoke = async (id: string): Promise<void> => {
    setAsked(undefined);
    if (id === own) {
      app.signOut();
      return;
    }
    await app.call("token/revoke", { id }).catch(() => {});
    await load();
  };
  const day = new Intl.DateTimeFormat(s.locale, { dateStyle: "medium" });

  return (
    <section class="setting device">
      <h2>{w.tokens}</h2>
      <ul>
        {tokens.map((t) => (
          <li key={t.id} data-token={t.id}>
            <span>
              {t.label} {t.id === own && <b>({w.thisDevice})</b>}
            </span>
            <span class="faint">
              {t.scopes.join(", ")} · {day.format(t.createdAt)}
            </span>
            {asked === t.id ? (
              <span>
                <button
                  type="button"
                  class="quiet"
                  data-act="sure"
                  onClick={() => void revoke(t.id)}
                >
                  {w.sure(t.label)}
                </button>
                <button type="button" class="quiet" onClick={() => setAsked(undefined)}>
                  {w.keep}
                </button>
              </span>
            ) : (
              <button
                type="button"
                class="quiet"
                data-act="revoke"
                aria-label={w.sure(t.label)}
                onClick={() => setAsked(t.id)}
              >
                {w.revoke}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
