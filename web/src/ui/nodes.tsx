// The nodes of a transcript. Text is the agent's or a person's own; what a node means was decided
// in the module, from the log.

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type {
  AskNode,
  AskState,
  Disclosure,
  Node,
  ReplyNode,
  ToolNode,
  Turn,
} from "../protocol/view.ts";
import { Chosen } from "./after.tsx";
import { useApp, useStrings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { Markdown } from "./markdown.tsx";
import { RecordPanel } from "./record.tsx";
import type { Strings } from "./strings/index.ts";
import { moment, visible } from "./text.ts";

/** A tool's arguments on one line. */
const argsLineCharsMax = 120;

interface Props<N> {
  node: N;
  sessionId: string;
  turn: Turn;
}

export function NodeView({ node, sessionId, turn }: Props<Node>): VNode | null {
  const s = useStrings();
  switch (node.k) {
    case "user":
      return (
        <div class="n n-user">
          <p class="said" dir="auto">
            {visible(node.text ?? "")}
          </p>
        </div>
      );
    case "turn":
    case "group":
      return <Fold node={node} sessionId={sessionId} turn={turn} />;
    case "reasoning":
      return (
        <div class="n n-in n-reasoning">
          <span class="n-kind">{s.reasoning}</span>
          <Markdown text={node.text ?? ""} strings={s} />
        </div>
      );
    case "text":
      return (
        <div class={`n n-text${node.in ? " n-in" : ""}`}>
          <Markdown text={node.text ?? ""} strings={s} />
          {node.interrupted && <p class="note">{s.interrupted}</p>}
        </div>
      );
    case "preview":
      return (
        <div class="n n-text n-preview">
          <Markdown text={node.text ?? ""} strings={s} />
        </div>
      );
    case "tool":
      return <ToolRow node={node} strings={s} />;
    case "ask":
      return <AskRow node={node} sessionId={sessionId} />;
    case "reply":
      return <Reply node={node} turn={turn} />;
    default:
      // A newer module may know nodes that this page does not; they are left out.
      return null;
  }
}

function Fold({ node, sessionId }: Props<Disclosure>): VNode | null {
  const app = useApp();
  const s = useStrings();
  const [used, setUsed] = useState(false);
  // An open group of one says nothing that its one item does not; it stays where someone used it.
  if (node.k === "group" && node.n === 1 && node.open && !used) return null;
  const parts =
    node.k === "turn"
      ? [s.turnSummary(node.steps ?? 0, node.tools ?? 0)]
      : [s.groupSummary(node.n ?? 0)];
  if (node.replies) parts.push(s.withReplies(node.replies));
  return (
    <div class={`n n-fold${node.k === "group" ? " n-in" : ""}`}>
      <button
        type="button"
        class="fold"
        aria-expanded={node.open === true}
        onClick={() => {
          setUsed(true);
          app.fold(sessionId, node.key, !node.open);
        }}
      >
        <Icon name="fold" />
        <span>{parts.join(" · ")}</span>
      </button>
    </div>
  );
}

function ToolRow({ node, strings: s }: { node: ToolNode; strings: Strings }): VNode {
  const [open, setOpen] = useState(false);
  const word = {
    running: s.toolRunning,
    done: "",
    error: s.toolError,
    interrupted: s.toolInterrupted,
  }[node.state];
  const args = node.args ?? "";
  return (
    <div class={`n n-in tool tool-${node.state}`}>
      <button type="button" class="tool-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="tool" />
        <span class="tool-name">{visible(node.name)}</span>
        <code class="tool-args">{visible(argsLine(node.name, args))}</code>
        {word && <span class="tool-state">{node.code ? `${word} · ${node.code}` : word}</span>}
      </button>
      {open && (
        <div class="tool-body">
          {args && <pre>{visible(args)}</pre>}
          {node.result && <pre>{visible(node.result)}</pre>}
        </div>
      )}
    </div>
  );
}

/** A command reads as itself; other arguments as they were recorded. */
function argsLine(name: string, args: string): string {
  let line = args;
  if (name === "bash") {
    try {
      const parsed: unknown = JSON.parse(args);
      if (typeof parsed === "object" && parsed !== null && "command" in parsed) {
        line = String(parsed.command);
      }
    } catch {
      // Arguments that were cut for display are no JSON any more.
    }
  }
  const flat = line.replace(/\s+/g, " ").trim();
  return flat.length > argsLineCharsMax ? `${flat.slice(0, argsLineCharsMax)}…` : flat;
}

const askIcon: Record<AskState, "question" | "check" | "close" | "clock"> = {
  waiting: "question",
  pending: "clock",
  queued: "check",
  answered: "check",
  cancelled: "close",
  interrupted: "close",
  withdrawn: "close",
  closed: "close",
  error: "close",
  ambiguous: "question",
};

export function askText(node: AskNode, s: Strings): string {
  const of = node.of ?? node.n ?? 0;
  switch (node.ask) {
    case "waiting":
      return s.askWaiting(of);
    case "pending":
      return s.askPending(of);
    case "queued":
      return s.askQueued;
    case "answered":
      return s.askAnswered(node.n ?? 0, of);
    case "cancelled":
      return s.askCancelled;
    case "interrupted":
      return s.askInterrupted;
    case "withdrawn":
      return s.askWithdrawn;
    case "closed":
      return s.askClosed;
    case "error":
      return s.askError(node.code ?? "");
    case "ambiguous":
      return s.askAmbiguous(node.n ?? 0);
  }
}

function AskRow({ node, sessionId }: { node: AskNode; sessionId: string }): VNode {
  const app = useApp();
  const s = useStrings();
  const [viewing, setViewing] = useState(false);
  const { key, callId } = node;
  const words = {
    open: s.actionOpen,
    answer: s.actionAnswer,
    view: s.actionView,
    cancel: s.actionCancel,
  };
  const run = (action: keyof typeof words): void => {
    if (action === "view") setViewing(!viewing);
    else if (!key) return;
    else if (action === "cancel") app.act(key, { act: "cancelReply" });
    else app.openCard(key);
  };
  return (
    <div class={`n n-in ask ask-${node.ask}`} data-ask={node.ask} data-call={callId}>
      <div class="ask-head">
        <Icon name={askIcon[node.ask]} />
        <span class="tool-name">{s.askName}</span>
        <span class="ask-state">{askText(node, s)}</span>
        <span class="spring" />
        {(node.actions ?? []).map((action) => (
          <button
            key={action}
            type="button"
            class="link"
            data-action={action}
            aria-expanded={action === "view" ? viewing : undefined}
            onClick={() => run(action)}
          >
            {words[action]}
          </button>
        ))}
      </div>
      {viewing && callId && <RecordPanel sessionId={sessionId} callId={callId} />}
    </div>
  );
}

function Reply({ node, turn }: { node: ReplyNode; turn: Turn }): VNode {
  const app = useApp();
  const s = useStrings();
  const facts = [
    node.by ? s.lateAnswerBy(visible(node.by)) : s.lateAnswer,
    ...(turn.turn === undefined ? [] : [s.readInTurn(turn.turn)]),
    ...(node.at ? [moment(node.at, app.store.now.value, s.locale)] : []),
  ];
  return (
    <div class="n n-in reply" data-reply={node.callId}>
      <p class="n-kind">{facts.join(" · ")}</p>
      {node.raw !== undefined ? (
        <pre>{visible(node.raw)}</pre>
      ) : (
        <dl class="pairs">
          {(node.pairs ?? []).map((pair, i) => (
            <div key={i} class="pair">
              <dt dir="auto">{visible(pair.question)}</dt>
              <dd>
                <Chosen labels={pair.selected ?? []} custom={pair.custom} strings={s} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
