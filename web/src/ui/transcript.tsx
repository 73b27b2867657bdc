// A session: its turns, and at the foot either the card that waits for the person or the composer.

import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { agentName, type Row, type Turn, type TurnState } from "../protocol/view.ts";
import type { Transcript } from "../store/store.ts";
import { CardPanel } from "./card.tsx";
import { Composer } from "./composer.tsx";
import { useApp, useLastFocus, useStrings, useTranscript } from "./context.ts";
import { Icon } from "./icons.tsx";
import { NodeView } from "./nodes.tsx";
import { SessionActions } from "./sessions.tsx";
import type { Strings } from "./strings/index.ts";
import { visible } from "./text.ts";

/** So close to the end counts as reading the end. */
const nearEndPx = 80;

export function SessionPage({ id }: { id: string }): VNode {
  const app = useApp();
  const s = useStrings();
  const transcript = useTranscript(id);
  const row = app.store.sessions.value.sessions?.find((each) => each.id === id);
  // The list hears of a new title; the transcript has the one it was opened with.
  const title = row?.title || transcript?.title || s.untitled;
  return (
    <div class="session">
      <header class="session-head">
        <button
          type="button"
          class="icon-button back"
          aria-label={s.back}
          onClick={() => app.go({ at: "sessions" })}
        >
          <Icon name="back" />
        </button>
        <h1 class="session-title" dir="auto">
          {visible(title)}
        </h1>
        <span class="faint" dir="auto">
          {agentName(row?.agent)}
        </span>
        <span class="spring" />
        <SessionActions id={id} title={title} row={row} />
      </header>
      <Turns id={id} transcript={transcript} />
      <Dock id={id} />
    </div>
  );
}

function Turns({ id, transcript }: { id: string; transcript: Transcript | undefined }): VNode {
  const s = useStrings();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);

  useLayoutEffect(() => {
    const element = box.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  });
  useEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === "undefined") return;
    // The dock grows and shrinks; a reader of the end stays there.
    const observer = new ResizeObserver(() => {
      if (atEnd.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  }, []);

  const state = transcript?.state ?? "loading";
  const turns = transcript?.turns ?? [];
  return (
    <div
      ref={box}
      class="turns"
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < nearEndPx;
      }}
    >
      <div class="turns-in">
        {state === "loading" && <p class="note note-quiet">{s.loading}</p>}
        {state === "stale" && <p class="note">{s.stale}</p>}
        {state === "gone" && <p class="note">{s.transcriptGone}</p>}
        {state === "error" && <p class="note">{s.transcriptError(transcript?.error ?? "")}</p>}
        {(transcript?.base ?? 0) > 0 && (
          <p class="note note-quiet">{s.earlier(transcript?.base ?? 0)}</p>
        )}
        {state === "live" && turns.length === 0 && <p class="empty">{s.emptyTranscript}</p>}
        {turns.map((turn) => (
          <TurnView key={turn.i} turn={turn} sessionId={id} />
        ))}
      </div>
    </div>
  );
}

/** Reads a signal and so is drawn again only when its turn is another object. */
function TurnView({ turn, sessionId }: { turn: Turn; sessionId: string }): VNode {
  const s = useStrings();
  const end = endText(turn.state, turn.message, s);
  return (
    <article class={`turn turn-${turn.state}`}>
      {(turn.rows ?? []).map((node, i) => (
        <NodeView key={nodeKey(node, i)} node={node} sessionId={sessionId} turn={turn} />
      ))}
      {turn.state === "running" && (
        <p class="working">
          <span>{s.working}</span>
        </p>
      )}
      {end && <p class="note turn-end">{end}</p>}
    </article>
  );
}

function nodeKey(node: NonNullable<Turn["rows"]>[number], i: number): string {
  if ("callId" in node && node.callId) return `${node.k}/${node.callId}`;
  if ("key" in node && node.key) return `${node.k}/${node.key}`;
  if ("id" in node) return `${node.k}/${node.id}`;
  return `${node.k}/${i}`;
}

function endText(state: TurnState, message: string | undefined, s: Strings): string {
  switch (state) {
    case "aborted":
      return s.turnAborted;
    case "error":
      return message ? s.turnError(visible(message)) : s.turnErrorPlain;
    case "max-tokens":
      return s.turnMaxTokens;
    case "blocked":
      return s.turnBlocked;
    case "interrupted":
      return s.turnInterrupted;
    default:
      return "";
  }
}

/** Cards of this session that want the place of the composer, in the order of the list. */
function docking(rows: readonly Row[], sessionId: string): Row[] {
  return rows.filter(
    (row) => row.sessionId === sessionId && !row.hidden && row.group !== "answered",
  );
}

function Dock({ id }: { id: string }): VNode {
  const app = useApp();
  const s = useStrings();
  const [writing, setWriting] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const rows = docking(app.store.cards.value.cards ?? [], id);
  const opened = app.opened.value?.key;
  const openedCount = app.opened.value?.n;

  useEffect(() => {
    if (opened === undefined || !rows.some((row) => row.key === opened)) return;
    setChosen(opened);
    setWriting(false);
  }, [opened, openedCount]);

  const queued = rows.filter((row) => row.group === "queued");
  const cards = rows.filter((row) => row.group !== "queued" || row.key === chosen);
  const shown = cards.find((row) => row.key === chosen) ?? cards[0];
  const agent = (row: Row): string => agentName(row.agent) || s.someAgent;
  // Someone who is writing a message keeps the composer; the card announces itself above it.
  const card = shown && !writing ? shown : undefined;

  // After one card the next takes over the focus. After the last the composer does not: a composer
  // in use keeps cards out of its place, and nobody has chosen to write yet.
  const dock = useRef<HTMLDivElement>(null);
  const inside = useLastFocus(dock);
  const last = useRef(card?.key);
  useEffect(() => {
    if (last.current === card?.key) return;
    const had = last.current;
    last.current = card?.key;
    if (had === undefined || !inside.current || opened === card?.key) return;
    if (card) app.focusCard(card.key);
  }, [app, card?.key, inside, opened]);

  return (
    <div class="dock" ref={dock}>
      {queued
        .filter((row) => row.key !== card?.key)
        .map((row) => (
          <p key={row.key} class="slip">
            <Icon name="check" />
            <span>{s.inInbox(agent(row))}</span>
            <span class="slip-text" dir="auto">
              {visible(row.text ?? "")}
            </span>
            <button type="button" class="link" onClick={() => setChosen(row.key)}>
              {s.view}
            </button>
            <button
              type="button"
              class="link"
              data-act="cancelReply"
              onClick={() => app.act(row.key, { act: "cancelReply" })}
            >
              {s.cancelReply}
            </button>
          </p>
        ))}
      {shown && !card && (
        <p class="slip slip-asks">
          <Icon name="question" />
          <span class="slip-text" dir="auto">
            {s.asks(agent(shown), visible(shown.text ?? ""))}
          </span>
          <button type="button" class="link" onClick={() => app.openCard(shown.key)}>
            {s.open}
          </button>
        </p>
      )}
      {card ? (
        <>
          {cards.length > 1 && (
            <div class="slip">
              <span>{s.moreCards(cards.length - 1)}</span>
              {cards
                .filter((row) => row.key !== card.key)
                .slice(0, 4)
                .map((row) => (
                  <button
                    key={row.key}
                    type="button"
                    class="link"
                    onClick={() => app.openCard(row.key)}
                  >
                    {visible(row.header || row.text || s.askName)}
                  </button>
                ))}
            </div>
          )}
          <CardPanel
            key={card.key}
            cardKey={card.key}
            follows={last.current !== undefined && opened !== card.key}
            docked
            onHide={() => setChosen(undefined)}
          />
        </>
      ) : (
        <Composer sessionId={id} onWriting={setWriting} />
      )}
    </div>
  );
}
