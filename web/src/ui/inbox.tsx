// What needs the person, what was carried on, what is on its way, what was kept and what is done.

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { agentName, type Group, type Row, statusWord } from "../protocol/view.ts";
import { remaining } from "../store/remaining.ts";
import { endedText } from "./after.tsx";
import { CardPanel } from "./card.tsx";
import { useApp, useLastFocus, useStrings } from "./context.ts";
import { Ring } from "./countdown.tsx";
import { FirstRun } from "./firstrun.tsx";
import { Icon } from "./icons.tsx";
import type { Strings } from "./strings/index.ts";
import { moment, visible } from "./text.ts";

const order: readonly Group[] = ["needs", "late", "queued", "ended", "answered"];

function groupTitle(group: Group, s: Strings): string {
  switch (group) {
    case "needs":
      return s.needsYou;
    case "late":
      return s.carriedOn;
    case "queued":
      return s.onTheWay;
    case "ended":
      return s.keptText;
    case "answered":
      return s.answeredToday;
  }
}

export function InboxList({ chosen }: { chosen: string | undefined }): VNode {
  const app = useApp();
  const s = useStrings();
  const view = app.store.cards.value;
  const rows = view.cards ?? [];
  const open = rows.some((row) => row.group !== "answered");
  return (
    <div class="list" data-list>
      {!open && <Quiet rows={rows} known={view.known === true} />}
      {order.map((group) => {
        const members = rows.filter((row) => row.group === group);
        if (members.length === 0) return null;
        return (
          <section key={group} class={`group group-${group}`}>
            <h2 class="group-title">
              <span>{groupTitle(group, s)}</span>
              <span key={members.length} class="count">
                {members.length}
              </span>
            </h2>
            <ul>
              {members.map((row) => (
                <InboxRow key={row.key} row={row} chosen={row.key === chosen} />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}

function InboxRow({ row, chosen }: { row: Row; chosen: boolean }): VNode {
  const app = useApp();
  const s = useStrings();
  const agent = agentName(row.agent) || s.someAgent;
  const kind = row.group === "late" ? "late" : row.blocking || row.plan ? "blocks" : "timed";
  return (
    <li>
      <button
        type="button"
        class={`row row-${row.group} row-${kind}${row.unread ? " row-unread" : ""}`}
        aria-current={chosen ? "true" : undefined}
        data-row={row.key}
        onClick={() => app.openCard(row.key)}
      >
        <span class="row-top">
          <span class="row-chip" dir="auto">
            {row.plan ? s.plan : visible(row.header || s.askName)}
          </span>
          <span class="row-agent" dir="auto">
            {visible(s.agentTitle(agent))}
          </span>
          {row.edited && row.group !== "answered" && (
            <span class="row-draft">
              <Icon name="pen" />
            </span>
          )}
          <RowTime row={row} strings={s} now={app.store.now.value} />
        </span>
        <span class="row-text" dir="auto">
          {row.group === "answered" && row.ended
            ? endedText({ agent: row.agent, state: "answered" }, row.ended, s)
            : visible(row.text ?? "")}
        </span>
      </button>
    </li>
  );
}

function RowTime(props: { row: Row; strings: Strings; now: number }): VNode | null {
  const { row, strings: s, now } = props;
  const span = (text: string): VNode => (
    <span key={text} class="row-time">
      {text}
    </span>
  );
  const countdown = row.countdown;
  if (row.group !== "needs") {
    const at = row.ended?.at ?? row.carriedAt;
    return at === undefined ? null : span(moment(at, now, s.locale));
  }
  const state = countdown?.state ?? "none";
  if ((state === "counting" || state === "focused") && countdown?.remainingMs !== undefined) {
    return (
      <span class={`row-time${countdown.warn ? " row-warn" : ""}`}>
        <Ring countdown={countdown} />
        <span key={s.left(remaining(countdown.remainingMs))}>
          {s.left(remaining(countdown.remainingMs))}
        </span>
      </span>
    );
  }
  return span(row.blocking || state !== "none" ? s.waits : "");
}

/** Nothing needs the person: said once, calmly; on the very first visit, how to begin. */
function Quiet({ rows, known }: { rows: readonly Row[]; known: boolean }): VNode {
  const app = useApp();
  const s = useStrings();
  const sessions = app.store.sessions.value.sessions ?? [];
  if (!known) return <p class="empty">{s.loading}</p>;
  if (sessions.length === 0 && rows.length === 0) return <FirstRun />;
  const works = sessions.some((each) => statusWord(each.status) === "running");
  return <p class="empty">{works ? s.nothingNeedsYou : s.nothingNeedsYouIdle}</p>;
}

export function InboxMain({ chosen }: { chosen: string | undefined }): VNode {
  const app = useApp();
  const s = useStrings();
  const main = useRef<HTMLDivElement>(null);
  const rows = app.store.cards.value.cards ?? [];
  const group = rows.find((row) => row.key === chosen)?.group;
  const before = useRef<{ key: string | undefined; group: Group | undefined }>(undefined);
  const inside = useLastFocus(main);
  const next = useRef<string>(undefined);

  // A person who has just sent an answer goes on with the next question, without looking for it.
  useEffect(() => {
    const last = before.current;
    before.current = { key: chosen, group };
    if (last?.key !== chosen && next.current !== chosen) next.current = undefined;
    const answered =
      last?.key === chosen &&
      (last?.group === "needs" || last?.group === "late") &&
      (group === "answered" || group === "queued");
    if (!answered || !inside.current) return;
    next.current = rows.find((row) => row.group === "needs" && !row.busy)?.key;
    if (next.current) app.openCard(next.current);
  });

  if (chosen === undefined) {
    return <p class="empty empty-main">{rows.length > 0 ? s.pickACard : ""}</p>;
  }
  return (
    <div class="main-card" ref={main}>
      <button
        type="button"
        class="icon-button back"
        aria-label={s.back}
        onClick={() => app.go({ at: "inbox" })}
      >
        <Icon name="back" />
      </button>
      {group === undefined ? (
        <p class="empty empty-main">{s.pickACard}</p>
      ) : (
        <CardPanel
          key={chosen}
          cardKey={chosen}
          follows={next.current === chosen}
          onHide={() => app.go({ at: "inbox" })}
        />
      )}
    </div>
  );
}
