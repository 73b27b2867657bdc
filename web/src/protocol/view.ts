// Twin of the views in wasm/client/doc.go. The module computes them; the page only draws them.
// Absent and false, absent and 0, absent and "" are the same.

export interface Question {
  id: string;
  question: string;
  header?: string;
  detail?: string;
  multi?: boolean;
  options?: Option[];
  /** Indexes of the chosen options. */
  selected?: number[];
  custom?: string;
  skipped?: boolean;
  answered?: boolean;
}

export interface Option {
  label: string;
  description?: string;
  recommended?: boolean;
}

export interface Countdown {
  state: "none" | "counting" | "focused" | "editing" | "waiting" | "continued";
  remainingMs?: number;
  totalMs?: number;
  warn?: boolean;
}

export interface Answer {
  id: string;
  selected: string[];
  custom?: string;
}

export interface Ended {
  reason:
    | "answered"
    | "answered-elsewhere"
    | "withdrawn"
    | "cancelled"
    | "aborted"
    | "closed"
    | "session-gone";
  code?: string;
  by?: string;
  byName?: string;
  at?: number;
  answers?: Answer[];
}

export type Group = "needs" | "late" | "queued" | "ended" | "answered";

export interface Hint {
  code:
    | "submit-again"
    | "not-accepted"
    | "discarded"
    | "reply-queued"
    | "failed"
    | "unanswered"
    | "in-inbox";
  field?: string;
  error?: string;
  message?: string;
}

export interface Row {
  key: string;
  group: Group;
  sessionId: string;
  callId?: string;
  title?: string;
  agent?: unknown;
  status?: unknown;
  note?: unknown;
  archived?: unknown;
  header?: string;
  text?: string;
  n?: number;
  plan?: unknown;
  blocking?: boolean;
  countdown?: Countdown;
  busy?: Busy | boolean;
  hint?: Hint;
  edited?: boolean;
  unread?: boolean;
  hidden?: boolean;
  since?: number;
  /** Wall ms when this page saw the agent carry on. */
  carriedAt?: number;
  ended?: Ended;
}

export type Busy = "sent" | "resend" | "rpc" | "settling";

export interface Refused {
  code: string;
  field?: string;
  message?: string;
  q?: number;
  part?: "selected" | "custom";
}

export interface Plan {
  q: number;
  detail: string;
  approve: string;
  other?: string;
}

export interface Card extends Omit<Row, "plan" | "busy"> {
  eventId?: string;
  state: "open" | "continued" | "queued" | "ended" | "answered";
  channel?: "ready" | "none" | "rpc";
  submit?: boolean;
  locked?: boolean;
  focus?: boolean;
  busy?: Busy;
  refused?: Refused;
  page?: number;
  restored?: boolean;
  storage?: "memory";
  messageId?: string;
  plan?: Plan;
  questions?: Question[];
}

export interface CardsView {
  conn: "up" | "down" | "stopped";
  stop?: number;
  known?: boolean;
  storage?: "local" | "memory";
  build?: "other";
  needs?: number;
  late?: number;
  queued?: number;
  ended?: number;
  cards?: Row[];
}

export interface SessionRow {
  id: string;
  title?: string;
  status?: unknown;
  agent?: unknown;
  note?: unknown;
  archived?: unknown;
  seq?: number;
  /** Wall ms of the last change. */
  at?: number;
  open?: number;
  late?: number;
  queued?: number;
  followed?: boolean;
}

export interface SessionsView {
  known?: boolean;
  sessions?: SessionRow[];
}

export type TurnState =
  | "running"
  | "completed"
  | "aborted"
  | "error"
  | "max-tokens"
  | "blocked"
  | "interrupted";

export interface Turn {
  i: number;
  rev?: number;
  turn?: number;
  state: TurnState;
  at?: number;
  message?: string;
  rows?: Node[];
}

export type AskState =
  | "waiting"
  | "pending"
  | "queued"
  | "answered"
  | "cancelled"
  | "interrupted"
  | "withdrawn"
  | "closed"
  | "error"
  | "ambiguous";

export interface Pair {
  question: string;
  header?: string;
  selected?: string[];
  custom?: string;
}

export type Node =
  | {
      k: "user";
      seq?: number;
      id: string;
      at?: number;
      source?: unknown;
      text?: string;
      in?: string;
    }
  | Disclosure
  | { k: "reasoning"; text?: string; in?: string }
  | { k: "text"; text?: string; in?: string; interrupted?: boolean }
  | { k: "preview"; text?: string }
  | ToolNode
  | AskNode
  | ReplyNode;

export interface Disclosure {
  k: "turn" | "group";
  key: string;
  open?: boolean;
  n?: number;
  steps?: number;
  tools?: number;
  replies?: number;
  in?: string;
}

export interface ToolNode {
  k: "tool";
  callId?: string;
  name: string;
  state: "running" | "done" | "error" | "interrupted";
  args?: string;
  result?: string;
  code?: string;
  in?: string;
}

export interface AskNode {
  k: "ask";
  callId?: string;
  ask: AskState;
  n?: number;
  of?: number;
  /** Of an error: what the agent got wrong. */
  code?: string;
  actions?: ("open" | "answer" | "view" | "cancel")[];
  key?: string;
  in?: string;
}

export interface ReplyNode {
  k: "reply";
  seq?: number;
  id: string;
  callId?: string;
  by?: string;
  at?: number;
  pairs?: Pair[];
  raw?: string;
  in?: string;
}

export interface TranscriptView {
  sessionId: string;
  rev?: number;
  state: "loading" | "live" | "stale" | "gone" | "error";
  error?: string;
  header?: unknown;
  title?: string;
  total?: number;
  base?: number;
  reset?: boolean;
  turns?: Turn[];
}

export interface RecordView {
  sessionId: string;
  callId: string;
  state: "answered" | "queued";
  questions: Question[];
}

export type ViewRequest =
  | { view: "cards" }
  | { view: "card"; key: string }
  | { view: "sessions" }
  | { view: "transcript"; sessionId: string; since?: number }
  | { view: "record"; sessionId: string; callId: string };

/** Agent and status are the host's own values; the page reads a word out of them and no more. */
export function agentName(agent: unknown): string {
  if (typeof agent === "string") return agent;
  const name = member(agent, "name");
  if (name !== "") return name;
  const kind = member(agent, "kind");
  return kind === "builtin" ? "" : kind;
}

export function statusWord(status: unknown): string {
  if (typeof status === "string") return status;
  return member(status, "state") || member(status, "kind");
}

function member(value: unknown, name: string): string {
  if (typeof value !== "object" || value === null) return "";
  const found = (value as Record<string, unknown>)[name];
  return typeof found === "string" ? found : "";
}
