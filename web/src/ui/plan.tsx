// A plan review: the whole plan, one button that says what the asker's own label says, and words.

import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Card, Plan } from "../protocol/view.ts";
import { Notes } from "./card.tsx";
import { useApp, useStrings } from "./context.ts";
import { CountdownLine } from "./countdown.tsx";
import { Markdown } from "./markdown.tsx";
import { visible } from "./text.ts";

export function PlanBody({ card, plan }: { card: Card; plan: Plan }): VNode {
  const app = useApp();
  const s = useStrings();
  const area = useRef<HTMLTextAreaElement>(null);
  const custom = card.questions?.[plan.q]?.custom ?? "";
  const question = card.questions?.[plan.q]?.question ?? "";

  useLayoutEffect(() => {
    if (area.current && area.current.value !== custom) area.current.value = custom;
  }, [custom]);

  return (
    <>
      <Notes card={card} />
      <p class="q-text" dir="auto">
        {visible(question)}
      </p>
      <div class="plan">
        <Markdown text={plan.detail} strings={s} />
      </div>
      <CountdownLine card={card} />
      <fieldset class="q" disabled={card.locked}>
        <legend class="sr">{s.changesLabel}</legend>
        <textarea
          ref={area}
          class="own-text own-boxed"
          dir="auto"
          rows={2}
          defaultValue={custom}
          placeholder={s.changesLabel}
          aria-label={s.changesLabel}
          aria-describedby={`${card.key}/changes`}
          data-own
          onInput={(event) => {
            app.act(card.key, { act: "custom", q: plan.q, text: event.currentTarget.value });
          }}
        />
        <p class="note note-quiet" id={`${card.key}/changes`}>
          {s.changesHint}
        </p>
      </fieldset>
      <footer class="card-foot">
        <span class="spring" />
        <button
          type="button"
          class="quiet"
          disabled={!card.submit}
          data-act="changes"
          onClick={() => app.act(card.key, { act: "changes" })}
        >
          {s.requestChanges}
        </button>
        <button
          type="button"
          class="primary"
          disabled={!card.submit}
          data-act="approve"
          onClick={() => app.act(card.key, { act: "approve" })}
        >
          <span>{visible(plan.approve)}</span>
        </button>
      </footer>
    </>
  );
}
