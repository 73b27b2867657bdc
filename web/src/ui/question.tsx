// One question of a card: its text, its options as a real radio or checkbox group, own words.

import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Card, Option, Question } from "../protocol/view.ts";
import { useApp, useStrings } from "./context.ts";
import { EnterWatch } from "./enter.ts";
import { Markdown } from "./markdown.tsx";
import { visible } from "./text.ts";

/** With more options than this a filter field helps. */
const filterFrom = 8;

interface Props {
  card: Card;
  question: Question;
  q: number;
}

export function QuestionField({ card, question, q }: Props): VNode {
  const app = useApp();
  const s = useStrings();
  const [filter, setFilter] = useState("");
  const [, redraw] = useState(0);
  const pointer = useRef(false);
  const fieldset = useRef<HTMLFieldSetElement>(null);
  const options = question.options ?? [];
  const selected = question.selected ?? [];
  const refused = card.refused?.q === q ? card.refused : undefined;
  const name = `${card.key}/${q}`;
  const hintId = `${name}/hint`;

  // The browser has already toggled what was clicked; the module decides whether that counts.
  useLayoutEffect(() => {
    for (const input of fieldset.current?.querySelectorAll<HTMLInputElement>("[data-o]") ?? []) {
      input.checked = selected.includes(Number(input.dataset.o));
    }
  });

  const choose = (o: number): void => {
    app.act(card.key, { act: "select", q, o, ...(pointer.current ? { pointer: true } : {}) });
    redraw((n) => n + 1);
  };

  const shown = options
    .map((option, o) => ({ option, o }))
    .filter(({ option }) => matches(option, filter));

  return (
    <fieldset
      ref={fieldset}
      class={`q${refused ? " q-refused" : ""}${question.skipped ? " q-skipped" : ""}`}
      disabled={card.locked}
      aria-describedby={hintId}
      onPointerDown={() => {
        pointer.current = true;
      }}
      onKeyDown={() => {
        pointer.current = false;
      }}
    >
      <legend class="q-text" dir="auto">
        {visible(question.question)}
      </legend>
      {question.detail && <Folded text={question.detail} />}
      {options.length > filterFrom && (
        <input
          type="search"
          class="q-filter"
          value={filter}
          placeholder={s.filterOptions}
          aria-label={s.filterOptions}
          autocomplete="off"
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {options.length > 0 && (
        <p class="sr" id={hintId}>
          {question.multi ? s.pickAny : s.pickOne}
        </p>
      )}
      <div class="opts">
        {shown.map(({ option, o }) => (
          <label key={o} class={`opt${selected.includes(o) ? " opt-on" : ""}`}>
            <input
              type={question.multi ? "checkbox" : "radio"}
              name={name}
              data-o={o}
              checked={selected.includes(o)}
              onClick={() => choose(o)}
            />
            <span class="opt-n" aria-hidden="true">
              {o + 1}
            </span>
            <span class="opt-body">
              <span class="opt-label" dir="auto">
                {visible(labelText(option))}
              </span>
              {option.recommended && <span class="tag">{s.recommended}</span>}
              {option.description && (
                <span class="opt-desc" dir="auto">
                  {visible(option.description)}
                </span>
              )}
            </span>
          </label>
        ))}
        {filter !== "" && shown.length === 0 && <p class="note">{s.noOptionMatches}</p>}
        <OwnWords card={card} question={question} q={q} />
      </div>
      {question.skipped && (
        <p class="note">
          <span>{s.skipped}</span>
        </p>
      )}
      {refused && (
        <p class="note note-refused" role="alert">
          {s.refused(visible(refused.message || refused.code))}
        </p>
      )}
    </fieldset>
  );
}

/** The mark is drawn beside the label, so the label itself is shown without it. What is sent is an index. */
export function labelText(option: Option): string {
  if (!option.recommended) return option.label;
  return option.label.replace(/\s*\(Recommended\)$/, "") || option.label;
}

function matches(option: Option, filter: string): boolean {
  if (filter === "") return true;
  const wanted = filter.toLocaleLowerCase();
  return `${option.label} ${option.description ?? ""}`.toLocaleLowerCase().includes(wanted);
}

function OwnWords({ card, question, q }: Props): VNode {
  const app = useApp();
  const s = useStrings();
  const area = useRef<HTMLTextAreaElement>(null);
  const [enter] = useState(() => new EnterWatch());
  const composing = useRef(false);
  const custom = question.custom ?? "";
  const options = question.options ?? [];
  const last = q + 1 >= (card.questions?.length ?? 0);

  // The person's caret is theirs: the text is written back only where the module changed it.
  useLayoutEffect(() => {
    const element = area.current;
    if (element && !composing.current && element.value !== custom) element.value = custom;
  }, [custom]);

  return (
    <label class={`own${custom ? " own-on" : ""}${options.length === 0 ? " own-only" : ""}`}>
      {options.length > 0 && (
        <span class="opt-n" aria-hidden="true">
          {options.length + 1}
        </span>
      )}
      <textarea
        ref={area}
        class="own-text"
        dir="auto"
        rows={options.length === 0 ? 3 : 1}
        defaultValue={custom}
        placeholder={options.length === 0 ? s.yourAnswer : s.ownWords}
        aria-label={options.length === 0 ? s.yourAnswer : s.ownWords}
        aria-invalid={card.refused?.q === q && card.refused.part === "custom"}
        data-own
        onInput={(event) => {
          app.act(card.key, { act: "custom", q, text: event.currentTarget.value });
        }}
        onCompositionStart={() => {
          composing.current = true;
          enter.compositionStart();
        }}
        onCompositionEnd={(event) => {
          composing.current = false;
          enter.compositionEnd(event.timeStamp);
        }}
        onKeyDown={(event) => {
          if (event.ctrlKey || event.metaKey || event.altKey || !enter.isReal(event)) return;
          event.preventDefault();
          app.act(card.key, last ? { act: "submit" } : { act: "page", to: q + 1 });
        }}
      />
    </label>
  );
}

/** Long detail, folded after eight lines. */
export function Folded({ text }: { text: string }): VNode {
  const s = useStrings();
  const box = useRef<HTMLDivElement>(null);
  const [tall, setTall] = useState(false);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element && !open) setTall(element.scrollHeight > element.clientHeight + 4);
  }, [open]);
  return (
    <div class="detail">
      <div ref={box} class={open ? "" : "detail-folded"}>
        <Markdown text={text} strings={s} />
      </div>
      {(tall || open) && (
        <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? s.showLess : s.showAll}
        </button>
      )}
    </div>
  );
}
