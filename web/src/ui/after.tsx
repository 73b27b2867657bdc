// A card after its answer went, or after it ended: read only.

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { failureText } from "../app/say.ts";
import { type Answer, agentName, type Card, type Ended, type Question } from "../protocol/view.ts";
import { useApp, useStrings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { labelText } from "./question.tsx";
import type { Strings } from "./strings/index.ts";
import { moment, visible } from "./text.ts";

/** How much of an answer a one-line summary shows. */
const summaryCharsMax = 80;

export function QueuedBody({ card }: { card: Card }): VNode {
  const app = useApp();
  const s = useStrings();
  const agent = agentName(card.agent) || s.someAgent;
  return (
    <div class="after">
      <p class="receipt">
        <Icon name="check" />
        <span>{s.inInbox(agent)}</span>
      </p>
      <Answers questions={card.questions ?? []} strings={s} />
      <footer class="card-foot">
        <span class="spring" />
        <button
          type="button"
          class="quiet"
          data-act="cancelReply"
          onClick={() => app.act(card.key, { act: "cancelReply" })}
        >
          {s.cancelReply}
        </button>
      </footer>
    </div>
  );
}

export function AnsweredBody({ card }: { card: Card }): VNode {
  const s = useStrings();
  const app = useApp();
  const at = card.ended?.at;
  const questions = recorded(card.questions ?? [], card.ended?.answers);
  return (
    <div class="after">
      <p class="receipt">
        <Icon name="check" />
        <span>{card.ended ? endedText(card, card.ended, s) : s.answered}</span>
        {at !== undefined && <span class="faint">{moment(at, app.store.now.value, s.locale)}</span>}
      </p>
      <Answers questions={questions} strings={s} />
    </div>
  );
}

export function EndedBody({ card }: { card: Card }): VNode {
  const app = useApp();
  const s = useStrings();
  const [note, setNote] = useState("");
  const [messageId] = useState(() => app.draw());
  const questions = card.questions ?? [];
  const text = draftText(questions);

  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setNote(s.copied);
    } catch {
      setNote(s.copyFailed);
    }
  };
  const sendOn = async (): Promise<void> => {
    try {
      await app.sendMessage(card.sessionId, text, messageId);
      app.act(card.key, { act: "dismiss" });
    } catch (error) {
      setNote(failureText(error, s));
    }
  };

  return (
    <div class="after">
      {card.ended && <p class="note">{endedText(card, card.ended, s)}</p>}
      <Answers questions={questions} strings={s} />
      {note && (
        <p class="note" role="status">
          {note}
        </p>
      )}
      <footer class="card-foot">
        <button
          type="button"
          class="quiet"
          data-act="dismiss"
          onClick={() => app.act(card.key, { act: "dismiss" })}
        >
          {s.dismiss}
        </button>
        <span class="spring" />
        {card.ended?.reason !== "session-gone" && (
          <button type="button" class="quiet" data-act="message" onClick={() => void sendOn()}>
            {s.sendAsMessage}
          </button>
        )}
        <button type="button" class="primary" data-act="copy" onClick={() => void copy()}>
          {s.copy}
        </button>
      </footer>
    </div>
  );
}

/** Questions with what was chosen or written, each as a pair. */
export function Answers(props: { questions: readonly Question[]; strings: Strings }): VNode {
  const s = props.strings;
  return (
    <dl class="pairs">
      {props.questions.map((question) => (
        <div key={question.id} class="pair">
          <dt dir="auto">{visible(question.question)}</dt>
          <dd>
            <Chosen labels={chosenLabels(question)} custom={question.custom} strings={s} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function Chosen(props: {
  labels: readonly string[];
  custom: string | undefined;
  strings: Strings;
}): VNode {
  const { labels, custom, strings: s } = props;
  if (labels.length === 0 && !custom) return <span class="faint">{s.skipped}</span>;
  return (
    <>
      {labels.map((label) => (
        <span key={label} class="pick" dir="auto">
          {visible(label)}
        </span>
      ))}
      {custom && (
        <span class="words" dir="auto">
          {visible(custom)}
        </span>
      )}
    </>
  );
}

/** Why a card ended and by whom, in one line. */
export function endedText(card: Pick<Card, "agent" | "state">, ended: Ended, s: Strings): string {
  const agent = agentName(card.agent) || s.someAgent;
  const what = summary(ended.answers, s);
  switch (ended.reason) {
    case "answered":
      return what ? s.answeredWith(what) : s.answered;
    case "answered-elsewhere":
      if (ended.byName) {
        // Without the record nobody knows what they chose, and that is not the same as a skip.
        if (!ended.answers) return s.answeredByPlain(visible(ended.byName));
        return s.answeredBy(visible(ended.byName), what || s.skipped);
      }
      return what ? s.answeredElsewhere(what) : s.answeredElsewherePlain;
    case "withdrawn":
      return s.withdrawn(agent);
    case "cancelled":
      return s.cancelled;
    case "aborted":
      return s.aborted(agent);
    case "closed":
      return s.closed(agent);
    case "session-gone":
      return s.sessionGone;
  }
}

function summary(answers: readonly Answer[] | undefined, s: Strings): string {
  const parts = (answers ?? []).flatMap((answer) => [
    ...answer.selected,
    ...(answer.custom ? [answer.custom] : []),
  ]);
  const text = visible(s.listAnd(parts)).replace(/\s+/g, " ");
  return text.length > summaryCharsMax ? `${text.slice(0, summaryCharsMax - 1)}…` : text;
}

function recorded(questions: readonly Question[], answers: Answer[] | undefined): Question[] {
  if (!answers) return [...questions];
  return questions.map((question) => {
    const answer = answers.find((each) => each.id === question.id);
    const labels = answer?.selected ?? [];
    const { custom: _draft, ...rest } = question;
    return {
      ...rest,
      options: labels.map((label) => ({ label })),
      selected: labels.map((_, i) => i),
      ...(answer?.custom ? { custom: answer.custom } : {}),
    };
  });
}

function chosenLabels(question: Question): string[] {
  const options = question.options ?? [];
  return (question.selected ?? []).flatMap((o) => {
    const option = options[o];
    return option ? [labelText(option)] : [];
  });
}

/** The person's draft as text, to be copied or sent as an ordinary message. */
export function draftText(questions: readonly Question[]): string {
  return questions
    .map((question) => {
      const given = [...chosenLabels(question), ...(question.custom ? [question.custom] : [])];
      return given.length === 0 ? "" : `${question.question}\n→ ${given.join(", ")}`;
    })
    .filter((part) => part !== "")
    .join("\n\n");
}
