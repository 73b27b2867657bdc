// The countdown as a person sees it: a quiet ring and one line.

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { agentName, type Card, type Countdown, statusWord } from "../protocol/view.ts";
import { remaining } from "../store/remaining.ts";
import { useApp, useStrings } from "./context.ts";
import { Icon } from "./icons.tsx";
import type { Strings } from "./strings/index.ts";
import { moment } from "./text.ts";

/** Runs by CSS alone: a negative delay puts the animation where the countdown is. */
export function Ring({ countdown }: { countdown: Countdown }): VNode | null {
  const { state, warn } = countdown;
  const left = countdown.remainingMs ?? 0;
  const total = Math.max(countdown.totalMs ?? left, left, 1);
  // Taken when the state is entered; while it counts, the animation keeps time by itself.
  const begun = useMemo(() => total - left, [state, total]);
  if (state === "none" || state === "continued") return null;
  if (state === "editing" || state === "waiting") {
    return <span class="ring ring-held" aria-hidden="true" />;
  }
  const counting = state === "counting";
  return (
    <span
      key={`${state}-${total}`}
      class={`ring${counting ? " ring-runs" : ""}${warn ? " ring-warn" : ""}`}
      style={
        counting
          ? { "--total": `${total}ms`, "--begun": `-${begun}ms` }
          : { "--left": String(left / total) }
      }
      aria-hidden="true"
    />
  );
}

export function countdownText(card: Card, now: number, s: Strings): string {
  const agent = agentName(card.agent) || s.someAgent;
  if (card.state === "continued") {
    if (statusWord(card.status) === "offline") return s.offlineAgent(agent);
    return card.carriedAt === undefined
      ? s.carriedOnLine
      : s.carriedOnAt(moment(card.carriedAt, now, s.locale));
  }
  const countdown = card.countdown;
  switch (countdown?.state) {
    case "counting": {
      const left = countdown.remainingMs ?? 0;
      return left <= 0 ? s.atZero(agent) : s.timed(remaining(left), agent);
    }
    case "focused":
      return s.paused(
        countdown.remainingMs === undefined ? undefined : remaining(countdown.remainingMs),
      );
    case "editing":
    case "waiting":
      return s.waitingForYou;
    default:
      return card.blocking ? s.blocking(agent) : "";
  }
}

/** What became of a submit, while it is under way. */
export function busyText(card: Card, s: Strings): string {
  switch (card.busy) {
    case "sent":
    case "rpc":
      return s.sent;
    case "resend":
      return s.resend;
    case "settling":
      return s.settling;
    default:
      return "";
  }
}

export function CountdownLine({ card }: { card: Card }): VNode {
  const app = useApp();
  const s = useStrings();
  const countdown = card.countdown;
  const busy = busyText(card, s);
  const runs = countdown?.state === "counting" || countdown?.state === "focused";
  const warns = runs && countdown.warn && busy === "";
  const text = busy || countdownText(card, app.store.now.value, s);
  return (
    <div class={`time${warns ? " time-warn" : ""}`}>
      {busy === "" && countdown && <Ring countdown={countdown} />}
      {warns && <Icon name="soon" />}
      {/* A translator puts its own nodes in place of a text, and a change would miss them: what a
          person must not misread is a new element for each text, here and in all that has its text
          as its key. */}
      <span key={text} class="time-text">
        {text}
      </span>
      {card.state === "open" && runs && !busy && (
        <button
          type="button"
          class="quiet"
          data-act="wait"
          aria-keyshortcuts="h"
          onClick={() => app.act(card.key, { act: "wait" })}
        >
          {s.takeTime}
        </button>
      )}
    </div>
  );
}
