// Where a person writes to the agent.

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { failureText } from "../app/say.ts";
import { useApp, useStrings } from "./context.ts";
import { EnterWatch } from "./enter.ts";

interface Props {
  sessionId: string;
  /** True while a card that arrives must not take this place. */
  onWriting: (writing: boolean) => void;
}

export function Composer({ sessionId, onWriting }: Props): VNode {
  const app = useApp();
  const s = useStrings();
  const area = useRef<HTMLTextAreaElement>(null);
  const [enter] = useState(() => new EnterWatch());
  const [words] = useState(() => app.words(sessionId));
  const [busy, setBusy] = useState(false);
  const [note, setNote] = useState("");
  const press = useRef({ text: "", id: "" });
  // While an attempt is under way a message waits for it; without one the press says so.
  const reachable = ["online", "connecting"].includes(app.link.value.state);

  useEffect(() => {
    report();
    return () => onWriting(false);
  }, [onWriting]);

  const report = (): void => {
    const element = area.current;
    onWriting(element !== null && (document.activeElement === element || element.value !== ""));
  };

  const send = async (): Promise<void> => {
    const element = area.current;
    const text = element?.value.trim() ?? "";
    if (!element || text === "" || busy) return;
    setBusy(true);
    setNote("");
    try {
      if (press.current.text !== text) press.current = { text, id: app.draw() };
      await app.sendMessage(sessionId, text, press.current.id);
      press.current = { text: "", id: "" };
      if (element.value.trim() === text) element.value = "";
      if (app.words(sessionId).trim() === text) app.keepWords(sessionId, "");
    } catch (error) {
      // The text stays where it is: nobody knows better than the person whether it went.
      setNote(failureText(error, s));
    } finally {
      setBusy(false);
      report();
    }
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {note && (
        <p class="note" role="status">
          {note}
        </p>
      )}
      <div class="composer-row">
        <textarea
          ref={area}
          class="own-text own-boxed"
          dir="auto"
          rows={1}
          defaultValue={words}
          placeholder={s.messagePlaceholder}
          aria-label={s.messagePlaceholder}
          onFocus={report}
          onBlur={report}
          onInput={(event) => {
            app.keepWords(sessionId, event.currentTarget.value);
            report();
          }}
          onCompositionStart={() => enter.compositionStart()}
          onCompositionEnd={(event) => enter.compositionEnd(event.timeStamp)}
          onKeyDown={(event) => {
            if (!enter.isReal(event) || event.altKey) return;
            event.preventDefault();
            void send();
          }}
        />
        <button type="submit" class="primary" disabled={busy || !reachable}>
          {s.send}
        </button>
      </div>
    </form>
  );
}
