// One ask. What it shows follows from its view's state; what a person does becomes an act.

import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { agentName, type Card } from "../protocol/view.ts";
import { AnsweredBody, EndedBody, QueuedBody } from "./after.tsx";
import { focusedNear, useApp, useCard, useStrings } from "./context.ts";
import { CountdownLine } from "./countdown.tsx";
import { Icon } from "./icons.tsx";
import { cardKey } from "./keys.ts";
import { PlanBody } from "./plan.tsx";
import { QuestionField } from "./question.tsx";
import type { Strings } from "./strings/index.ts";
import { visible } from "./text.ts";

/** A card that took the place of another answers to nothing for this long: it was not what was meant. */
const followsMs = 400;

interface Props {
  cardKey: string;
  /** It takes the place of a card that is done, and nobody has chosen it. */
  follows?: boolean;
  /** Docked in a transcript, or by itself beside the list. */
  docked?: boolean;
  onHide?: () => void;
}

export function CardPanel({ cardKey: key, follows, docked, onHide }: Props): VNode | null {
  const app = useApp();
  const s = useStrings();
  const card = useCard(key);
  const section = useRef<HTMLElement>(null);
  const [meantFrom] = useState(() => performance.now() + (follows ? followsMs : 0));
  const opened = app.opened.value;
  const asked = opened?.key === key ? opened.n : 0;
  const known = card !== undefined;
  const mayFocus = card?.focus === true;

  useEffect(() => {
    if (known && card.unread) app.act(key, { act: "seen" });
  }, [app, key, known, card?.unread]);

  // Only a card that a person opened takes focus, and its answers only where no countdown runs.
  useEffect(() => {
    if (asked === 0 || !known) return;
    const root = section.current;
    if (!root || root.contains(focusedNear(root))) return;
    const first = mayFocus ? firstControl(root) : undefined;
    (first ?? root.querySelector<HTMLElement>("h2"))?.focus();
    root.scrollIntoView({ block: "nearest" });
  }, [asked, known]);

  if (!card) return null;
  const agent = agentName(card.agent);
  const hides = card.state === "open" || card.state === "continued" || card.state === "queued";

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const does = cardKey(event, card, app.preferences.value.letters);
    if (!does) return;
    if ("act" in does && performance.now() < meantFrom) return;
    event.preventDefault();
    event.stopPropagation();
    if ("act" in does) app.act(key, does.act);
    else if ("focus" in does) {
      section.current?.querySelector<HTMLElement>("[data-own]")?.focus();
    } else moveFocus(section.current, event.target, does.move);
  };

  return (
    <section
      ref={section}
      class={`card card-${card.state}${docked ? " card-docked" : ""}${card.plan ? " card-plan" : ""}`}
      aria-label={`${card.header ?? ""} ${agent || s.agentTitle(s.someAgent)}`.trim()}
      onKeyDown={onKeyDown}
      onClickCapture={(event) => {
        if (event.detail === 0 || performance.now() >= meantFrom) return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <header class="card-head">
        <h2 class="chip" tabIndex={-1} dir="auto">
          <span key={headerOf(card, s)}>{card.plan ? s.plan : visible(headerOf(card, s))}</span>
        </h2>
        <span class="card-who" dir="auto">
          {[agent, card.title]
            .filter(Boolean)
            .map((part) => visible(part ?? ""))
            .join(" · ")}
        </span>
        {!docked && card.sessionId && (
          <button
            type="button"
            class="link"
            onClick={() => app.go({ at: "session", id: card.sessionId })}
          >
            {s.openSession}
          </button>
        )}
        {hides && (
          <button
            type="button"
            class="icon-button"
            title={card.callId ? s.hide : s.close}
            aria-label={card.callId ? s.hide : s.close}
            onClick={() => {
              app.act(key, { act: card.callId ? "hide" : "close" });
              onHide?.();
            }}
          >
            <Icon name={card.callId ? "away" : "close"} />
          </button>
        )}
      </header>
      <Body card={card} />
    </section>
  );
}

function Body({ card }: { card: Card }): VNode {
  switch (card.state) {
    case "queued":
      return <QueuedBody card={card} />;
    case "ended":
      return <EndedBody card={card} />;
    case "answered":
      return <AnsweredBody card={card} />;
    default:
      return (
        <AnswerSurface card={card}>
          {card.plan ? <PlanBody card={card} plan={card.plan} /> : <AnswerBody card={card} />}
        </AnswerSurface>
      );
  }
}

/** The answer surface: focus anywhere in it is the card's focus, and it is one form. */
function AnswerSurface({ card, children }: { card: Card; children: VNode }): VNode {
  const app = useApp();
  const form = useRef<HTMLFormElement>(null);
  const inside = useRef(false);
  const page = card.page ?? 0;
  const shownPage = useRef(page);
  const key = card.key;

  useEffect(
    () => () => {
      if (inside.current) app.act(key, { act: "blur" });
    },
    [app, key],
  );

  // The next question takes over the focus that the last one had, so that keys keep working.
  useLayoutEffect(() => {
    if (shownPage.current === page) return;
    shownPage.current = page;
    if (inside.current && form.current) firstControl(form.current)?.focus();
  }, [page]);

  return (
    <form
      ref={form}
      class="answer"
      autocomplete="off"
      onSubmit={(event) => event.preventDefault()}
      onFocusIn={() => {
        if (inside.current) return;
        inside.current = true;
        app.act(key, { act: "focus" });
      }}
      onFocusOut={() => {
        // Focus that moves within the form passes through nothing for a moment.
        setTimeout(() => {
          const root = form.current;
          if (!inside.current || root?.contains(focusedNear(root))) return;
          inside.current = false;
          app.act(key, { act: "blur" });
        }, 0);
      }}
    >
      {children}
    </form>
  );
}

function AnswerBody({ card }: { card: Card }): VNode {
  const app = useApp();
  const s = useStrings();
  const questions = card.questions ?? [];
  const q = Math.min(card.page ?? 0, Math.max(0, questions.length - 1));
  const question = questions[q];
  const many = questions.length > 1;
  const pointer = (event: MouseEvent) => (event.detail > 0 ? { pointer: true } : {});
  return (
    <>
      <Notes card={card} />
      {question && <QuestionField key={`${card.key}/${q}`} card={card} question={question} q={q} />}
      <CountdownLine card={card} />
      <footer class="card-foot">
        {many && (
          <div class="pager">
            <span key={`q${q}`} class="sr">
              {s.questionOf(q + 1, questions.length)}
            </span>
            <span key={`at${q}`} class="pager-at" aria-hidden="true">
              {`${q + 1} / ${questions.length}`}
            </span>
            <button
              type="button"
              class="icon-button"
              aria-label={s.previous}
              disabled={q === 0}
              onClick={(event) => {
                app.act(card.key, { act: "page", to: q - 1, ...pointer(event) });
              }}
            >
              <Icon name="back" />
            </button>
            <button
              type="button"
              class="icon-button"
              aria-label={s.next}
              disabled={q + 1 >= questions.length}
              onClick={(event) => {
                app.act(card.key, { act: "page", to: q + 1, ...pointer(event) });
              }}
            >
              <Icon name="next" />
            </button>
            <span class="dots" aria-hidden="true">
              {questions.map((each, i) => (
                <span
                  key={each.id}
                  class={`dot${each.answered || each.skipped ? " dot-done" : ""}${i === q ? " dot-here" : ""}`}
                />
              ))}
            </span>
          </div>
        )}
        <span class="spring" />
        <button
          type="button"
          class="quiet"
          disabled={card.locked}
          aria-keyshortcuts="x"
          data-act="skip"
          onClick={(event) => {
            app.act(card.key, { act: "skip", q, on: !question?.skipped, ...pointer(event) });
          }}
        >
          <span key={question?.skipped}>{question?.skipped ? s.unskip : s.skip}</span>
        </button>
        <button
          type="button"
          class="primary"
          disabled={!card.submit}
          data-act="submit"
          onClick={(event) => app.act(card.key, { act: "submit", ...pointer(event) })}
        >
          <span key={sendLabel(card, s)}>{sendLabel(card, s)}</span>
          <kbd>{s.sendKeys}</kbd>
        </button>
      </footer>
    </>
  );
}

export function sendLabel(card: Card, s: Strings): string {
  if (card.hint?.code === "submit-again") return s.sendAgain;
  return card.state === "continued" ? s.sendLate : s.send;
}

/** Quiet notes above the question: a restored draft, a hint, a refusal, a storage that is not there. */
export function Notes({ card }: { card: Card }): VNode {
  const s = useStrings();
  const hint = hintText(card, s);
  const refused = card.refused;
  return (
    <div class="notes">
      {card.restored && <p class="note note-quiet">{s.restored}</p>}
      {card.storage === "memory" && <p class="note">{s.storageMemory}</p>}
      {hint && (
        <p key={hint} class="note note-hint">
          {hint}
        </p>
      )}
      {refused && refused.q === undefined && (
        <p class="note note-refused" role="alert">
          {s.refused(visible(refused.message || refused.code))}
        </p>
      )}
      {refused?.q !== undefined && refused.q !== (card.page ?? 0) && (
        <p class="note note-refused" role="alert">
          {s.refusedAt(refused.q + 1, visible(refused.message || refused.code))}
        </p>
      )}
    </div>
  );
}

function hintText(card: Card, s: Strings): string {
  const hint = card.hint;
  switch (hint?.code) {
    case "submit-again":
      return s.submitAgain;
    case "not-accepted":
      return s.notAccepted;
    case "discarded":
      return s.discarded;
    case "reply-queued":
      return s.replyQueued;
    case "failed": {
      const detail = hint.message || hint.error;
      return detail ? s.failed(visible(detail)) : s.failedPlain;
    }
    case "unanswered":
      return s.unanswered;
    default:
      return "";
  }
}

function headerOf(card: Card, s: Strings): string {
  const here = card.questions?.[card.page ?? 0]?.header;
  return here || card.header || s.askName;
}

function firstControl(root: HTMLElement): HTMLElement | undefined {
  return (
    root.querySelector<HTMLElement>("input[data-o]:checked") ??
    root.querySelector<HTMLElement>("input[data-o]") ??
    root.querySelector<HTMLElement>("[data-own]") ??
    undefined
  );
}

/** Arrows move between options without choosing one: a choice would turn the page. */
function moveFocus(root: HTMLElement | null, from: EventTarget | null, by: 1 | -1): void {
  const stops = [...(root?.querySelectorAll<HTMLElement>("input[data-o], [data-own]") ?? [])];
  const at = stops.indexOf(from as HTMLElement);
  stops[(at + by + stops.length) % stops.length]?.focus();
}
