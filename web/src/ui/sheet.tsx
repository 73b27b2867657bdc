// The sheet of shortcuts.

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useStrings } from "./context.ts";

export function Sheet({ onClose }: { onClose: () => void }): VNode {
  const s = useStrings();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const keys: readonly [string, string][] = [
    ["j k ↑ ↓", s.keyLists],
    ["Enter", s.keyOpen],
    ["Esc", s.keyBack],
    ["1–9", s.keyChoose],
    ["r", s.keyRecommended],
    ["o", s.keyOwn],
    ["Ctrl/⌘ Enter", s.keySend],
    ["h", s.keyTime],
    ["x", s.keySkip],
    ["[ ]", s.keyPage],
    ["g i · g s", s.keyGo],
    ["/", s.keySearch],
    ["?", s.keySheet],
  ];
  return (
    <dialog ref={dialog} class="sheet" aria-label={s.shortcuts} onClose={onClose}>
      <h2>{s.shortcuts}</h2>
      <dl>
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
        {s.close}
      </button>
    </dialog>
  );
}
