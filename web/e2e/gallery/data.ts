// What the gallery shows.

const minute = 60_000;
const now = Date.now();

const store = {
  id: "store",
  question: "Which store should sessions use?",
  header: "Database",
  detail:
    "Both work with the **current schema**. Postgres is already in `compose.yaml`; SQLite would mean one file less to run.\n\n| store | writes/s | backup |\n|---|---|---|\n| Postgres | 12k | pg_dump |\n| SQLite | 4k | copy |\n\nSee https://example.com and [the notes](https://example.org/notes).",
  options: [
    {
      label: "Postgres (Recommended)",
      description: "already in compose; migrations exist",
    },
    { label: "SQLite", description: "single file, no HA" },
  ],
};

const features = {
  id: "features",
  question: "What should the first release carry?",
  header: "Scope",
  multiSelect: true,
  options: ["Sign-in", "Search", "Export", "Audit log"].map((label) => ({ label })),
};

const words = { id: "name", question: "What shall the service be called?", header: "Name" };

const plan = {
  id: "plan",
  question: "Go ahead with this plan?",
  header: "Plan",
  detail:
    "# Move sessions to Postgres\n\n1. Add the table and its index\n2. Write both, read the old one\n3. Backfill in batches of 1,000\n4. Read the new one, drop the old\n\n```sql\ncreate table session (id uuid primary key, at timestamptz not null);\n```\n\n> Nothing is dropped before step 4.",
  options: [{ label: "Approve" }, { label: "Request changes" }],
  intent: { kind: "plan-review", approve: "Approve" },
};

const deploy = {
  id: "deploy",
  question: "Deploy to staging now?",
  header: "Deploy",
  options: [{ label: "Now" }, { label: "After the tests" }],
};

function row(id: string, title: string, name: string, extra: object = {}) {
  return {
    id,
    title,
    status: "running",
    agent: { kind: "external", name },
    active: [],
    queued: [],
    seq: 3,
    createdAt: now - 5 * minute,
    updatedAt: now,
    ...extra,
  };
}

export const sessions = [
  row("payments", "payments", "build-bot", {
    agent: { kind: "external", name: "build-bot" },
    active: [{ callId: "q1", questions: [store, features, words], state: "open" }],
  }),
  row("docs", "Rewrite the handbook", "docs-bot"),
  row("ci", "Nightly", "ci-7", {
    status: "completed",
    active: [{ callId: "q3", questions: [deploy], state: "continued" }],
  }),
];

export const requests = [
  {
    eventId: "e1",
    sessionId: "payments",
    claimMs: 134_000,
    request: { questions: [store, features, words], wait: { callId: "q1", timed: true } },
  },
  { eventId: "e2", sessionId: "docs", claimMs: 0, request: { questions: [plan] } },
];

let seq = 0;
const event = (type: string, payload: object) => ({
  seq: seq++,
  time: now - 10 * minute + seq * 9_000,
  type,
  data: payload,
});

const call = (step: number, callId: string, name: string, args: object) =>
  event("tool/call", { turn: 1, step, callId, name, arguments: JSON.stringify(args) });

const result = (step: number, callId: string, text: string, isError = false) =>
  event("tool/result", {
    turn: 1,
    step,
    message: {
      id: `r-${callId}`,
      role: "tool",
      toolCallId: callId,
      isError,
      content: [{ type: "text", text }],
    },
  });

const toolSpelling = ({ multiSelect, ...question }: { multiSelect?: boolean; id: string }) => ({
  ...question,
  ...(multiSelect ? { multi_select: true } : {}),
});

const assistant = (step: number, content: object[]) =>
  event("assistant/message", { turn: 1, step, message: { id: `a${step}`, content } });

export function follow(sessionId: string) {
  if (sessionId !== "payments") {
    return { header: { version: 1, id: sessionId, createdAt: now }, seq: -1, projections: {} };
  }
  seq = 0;
  const events = [
    event("turn/start", { turn: 1 }),
    event("user/message", {
      id: "u1",
      source: { kind: "user" },
      content: [{ type: "text", text: "Move the sessions of payments out of memory, please." }],
    }),
    event("step/start", { turn: 1, step: 1 }),
    event("request/header", {
      header: {
        config: { provider: "script", model: "demo" },
        tools: [
          {
            name: "ask_user_question",
            description: "",
            parameters: { type: "object", properties: { questions: {}, timeout: {} } },
          },
        ],
      },
      reason: "initial",
    }),
    assistant(1, [
      { type: "reasoning", text: "Look at what is there first." },
      { type: "text", text: "I will look at how sessions are kept today." },
      { type: "tool-call", callId: "b1", name: "bash", arguments: "{}" },
    ]),
    call(1, "b1", "bash", { command: "rg -n 'SessionStore' --stats" }),
    result(1, "b1", "src/session.ts:14: class SessionStore\n3 matches"),
    event("step/end", { turn: 1, step: 1 }),
    event("step/start", { turn: 1, step: 2 }),
    assistant(2, [
      { type: "text", text: "Two stores fit. I will ask, and go on with what both need." },
      { type: "tool-call", callId: "q1", name: "ask_user_question", arguments: "{}" },
    ]),
    call(2, "q1", "ask_user_question", {
      questions: [store, features, words].map(toolSpelling),
      timeout: 120,
    }),
  ];
  return {
    header: { version: 1, id: sessionId, createdAt: now, title: "payments" },
    seq: events.length - 1,
    projections: {
      userQuestions: {
        active: [{ callId: "q1", questions: [store, features, words], state: "open" }],
        settled: [],
      },
      inbox: { "next-step": [], "next-turn": [] },
    },
    events,
  };
}
