// Signed out: how to get a login link, and a field for one.

import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { codeIn } from "../app/signin.ts";
import { useApp, useStrings } from "./context.ts";

export function SignInPage(): VNode {
  const app = useApp();
  const s = useStrings();
  const input = useRef<HTMLInputElement>(null);
  const [unreadable, setUnreadable] = useState(false);
  const state = app.signIn.value;
  const bad = unreadable || state === "bad";

  const submit = (): void => {
    const code = codeIn(input.current?.value ?? "");
    setUnreadable(code === undefined);
    if (code !== undefined) void app.signInWith(code);
  };

  return (
    <main class="signin">
      <div class="signin-box">
        <p class="brand">Meanwhile</p>
        <h1>{s.signInTitle}</h1>
        <p>{s.signInBody}</p>
        <pre translate={false}>meanwhile login</pre>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          <label>
            <span>{s.signInPaste}</span>
            <input
              ref={input}
              type="text"
              autocomplete="off"
              spellcheck={false}
              dir="ltr"
              aria-invalid={bad}
            />
          </label>
          {bad && (
            <p class="note note-refused" role="alert">
              {s.signInBad}
            </p>
          )}
          {state === "network" && (
            <p class="note" role="alert">
              {s.signInNetwork}
            </p>
          )}
          <button type="submit" class="primary" disabled={state === "busy"}>
            {s.signInButton}
          </button>
        </form>
      </div>
    </main>
  );
}
