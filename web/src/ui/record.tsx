// The read-only panel of a settled ask: what was asked, what was offered, what was answered.

import type { VNode } from "preact";
import type { Question } from "../protocol/view.ts";
import { useRecord, useStrings } from "./context.ts";
import { labelText } from "./question.tsx";
import type { Strings } from "./strings/index.ts";
import { visible } from "./text.ts";

export function RecordPanel(props: { sessionId: string; callId: string }): VNode | null {
  const s = useStrings();
  const record = useRecord(props.sessionId, props.callId);
  if (!record) return null;
  return (
    <div class="record">
      {record.questions.map((question) => (
        <RecordedQuestion key={question.id} question={question} strings={s} />
      ))}
    </div>
  );
}

function RecordedQuestion({
  question,
  strings: s,
}: {
  question: Question;
  strings: Strings;
}): VNode {
  const selected = question.selected ?? [];
  const none = selected.length === 0 && !question.custom;
  return (
    <div class="recorded">
      <p class="q-text" dir="auto">
        {visible(question.question)}
      </p>
      <ul class="recorded-opts">
        {(question.options ?? []).map((option, o) => (
          <li key={option.label} class={selected.includes(o) ? "recorded-on" : ""} dir="auto">
            <span>{visible(labelText(option))}</span>
            {selected.includes(o) && <span class="tag">{s.chosen}</span>}
          </li>
        ))}
      </ul>
      {question.custom && (
        <p class="words" dir="auto">
          {visible(question.custom)}
        </p>
      )}
      {none && <p class="faint">{s.skipped}</p>}
    </div>
  );
}
