// A LangGraph interrupt that a person answers in Meanwhile, in time or late.
//
//     npm ci
//     MEANWHILE_TOKEN=$(meanwhile token create --scope ask --label langgraph) node bridge.mjs
//
// The graph knows nothing of Meanwhile: it interrupts with questions, and later
// for their late reply. The bridge below turns each interrupt into a request and
// resumes the graph with where the ask stands. docs/examples/README.md explains
// the settings, the four outcomes and the exit codes.

import { Annotation, Command, END, INTERRUPT, interrupt, MemorySaver, START, StateGraph } from "@langchain/langgraph";

const api = `${process.env.MEANWHILE_URL ?? "http://127.0.0.1:7331"}/api/v1/`;
const token = process.env.MEANWHILE_TOKEN ?? fail("set MEANWHILE_TOKEN to a token with the scope ask");
const key = process.env.MEANWHILE_KEY ?? "langgraph-example"; // the same key is the same session
const timeout = Number(process.env.MEANWHILE_TIMEOUT ?? 120); // the person's seconds; -1: until they answer
const holdMs = Number(process.env.MEANWHILE_HOLD_MS ?? 50_000); // how long one request stays open
const patienceMs = Number(process.env.MEANWHILE_PATIENCE ?? 600) * 1000; // for a late reply
const holder = crypto.randomUUID(); // this process, for the leases on what it is handed
const tries = 10;

// ---- The graph.

const State = Annotation.Root({ said: Annotation(), choice: Annotation() });

// A node runs again from its start when it is resumed: nothing that must happen
// once stands before interrupt().
const graph = new StateGraph(State)
  .addNode("ask", () => ({
    said: interrupt({
      ask: {
        timeout,
        questions: [
          { id: "store", question: "Which store should sessions use?", options: [{ label: "Postgres" }, { label: "SQLite" }] },
        ],
      },
    }),
  }))
  .addNode("independent", ({ said }) => {
    // Pending is not a skip and not permission: only what needs no answer is done.
    if (said.status === "pending") console.log("working: on what does not depend on the answer");
    return {};
  })
  .addNode("decide", ({ said }) => {
    if (said.status === "answered") return { choice: { word: "answered", answers: said.answers } };
    return { choice: { word: "late", answers: interrupt({ reply: said.callId }).answers } };
  })
  .addEdge(START, "ask")
  .addEdge("ask", "independent")
  .addEdge("independent", "decide")
  .addEdge("decide", END)
  // With a checkpointer on disk the thread survives this process, as the ask does.
  .compile({ checkpointer: new MemorySaver() });

// ---- The bridge.

function fail(text, code = 1) {
  console.error(text);
  process.exit(code);
}

// One request. Each can be sent again without harm, so a cut one is.
async function call(method, path, body, headers = {}) {
  for (let left = tries - 1; ; left--, await new Promise((done) => setTimeout(done, 1000))) {
    let status;
    let out;
    try {
      const response = await fetch(api + path, {
        method,
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(holdMs + 30_000),
      });
      status = response.status;
      out = await response.json();
    } catch (trouble) {
      if (left > 0) continue; // no host, a cut connection, half a response
      fail(`no host: ${trouble}`);
    }
    if (status === 200) return out;
    if ((status === 429 || status === 503) && left > 0) continue;
    fail(`refused: ${out.code}: ${out.detail}`, status === 410 ? 5 : 1); // RFC 9457
  }
}

// ASCII JSON keeps control characters off the terminal.
const ascii = (value) =>
  JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function tell(word, answers) {
  for (const a of answers) {
    const skipped = a.selected.length === 0 && a.custom === undefined;
    console.log(`${word}: ${skipped ? `${a.id} was skipped, nothing was chosen` : ascii(a)}`);
  }
}

async function acknowledge(session, messageIds) {
  const { admitted } = await call("POST", `${session}/inbox/admit`, { messageIds });
  console.log(`acknowledged: ${admitted.length}`);
}

// What came while no process of this agent ran.
async function readInbox(session) {
  const { messages } = await call("POST", `${session}/inbox/claim`, { holder });
  for (const message of messages) {
    const text = message.content.map((part) => part.text ?? "").join("");
    let answers;
    try {
      answers = JSON.parse(text)?.answers;
    } catch {
      // a message of the person, not a reply
    }
    if (Array.isArray(answers)) tell("earlier", answers);
    else console.log(`message: ${ascii(text)}`);
  }
  if (messages.length > 0) await acknowledge(session, messages.map((m) => m.id));
}

const wait = (session, callId, ms) => call("GET", `${session}/asks/${callId}?holdMs=${ms}&holder=${holder}`);

// For an interrupt with questions: gives the answers, or pending. The graph is
// not resumed while the question is open.
async function ask(session, id, questions) {
  // An interrupt that is met again, after a crash too, is the same ask.
  let standing = await call("POST", `${session}/asks`, { ...questions, holdMs, holder }, { "Idempotency-Key": id });
  while (standing.status === "waiting" || (standing.status === "pending" && standing.remainingMs > 0)) {
    console.log(
      standing.status === "waiting"
        ? "waiting: asked without a limit, so nothing goes on without the answer"
        : "open: only this request is over, the person still has time",
    );
    standing = await wait(session, standing.callId, holdMs);
  }
  if (standing.status === "pending") console.log("pending: nobody answered in time, so nothing was chosen");
  return standing;
}

// For an interrupt that cannot go on without the late reply.
async function reply(session, callId) {
  const until = performance.now() + patienceMs;
  for (;;) {
    const leftMs = Math.floor(until - performance.now());
    if (leftMs <= 0) {
      console.log("unanswered: what depends on it is not done; the next run finds the reply");
      process.exit(4);
    }
    const standing = await wait(session, callId, Math.min(holdMs, leftMs));
    if (standing.status === "answered") return standing;
  }
}

const { sessionId } = await call("POST", "sessions", { agent: { name: "langgraph example" }, key });
const session = `sessions/${sessionId}`;
await readInbox(session);

const thread = { configurable: { thread_id: crypto.randomUUID() } };
let state = await graph.invoke({}, thread);
const handed = [];
while (state[INTERRUPT]?.length > 0) {
  const [{ id, value }] = state[INTERRUPT];
  const standing = value.ask ? await ask(session, `${thread.configurable.thread_id}:${id}`, value.ask) : await reply(session, value.reply);
  state = await graph.invoke(new Command({ resume: { [id]: standing } }), thread);
  if (standing.messageId !== undefined) handed.push(standing.messageId);
}

tell(state.choice.word, state.choice.answers);
// Only now, when the graph has the answer in a checkpoint. Dying before it costs
// nothing: the message comes again, with the same id.
if (handed.length > 0) await acknowledge(session, handed);
