// Ask a person through Meanwhile, with nothing but fetch.
//
//     MEANWHILE_TOKEN=$(meanwhile token create --scope ask --label typescript) node ask.mts
//
// Node 22.18 and later run it as it is; for Node 20 compile it first, as
// docs/examples/README.md says, which also explains the settings and the four
// outcomes. Ends with 0 when there is an answer, 4 when there is none yet, 5 when
// the question ended without one, 1 when something failed.

const api = `${process.env.MEANWHILE_URL ?? "http://127.0.0.1:7331"}/api/v1/`;
const token = process.env.MEANWHILE_TOKEN ?? fail("set MEANWHILE_TOKEN to a token with the scope ask");
const key = process.env.MEANWHILE_KEY ?? "typescript-example"; // the same key is the same session
const timeout = Number(process.env.MEANWHILE_TIMEOUT ?? 120); // the person's seconds; -1: until they answer
const holdMs = Number(process.env.MEANWHILE_HOLD_MS ?? 50_000); // how long one request stays open
const patienceMs = Number(process.env.MEANWHILE_PATIENCE ?? 600) * 1000; // for a late reply
const holder = crypto.randomUUID(); // this process, for the leases on what it is handed
const tries = 10;

type Answer = { id: string; selected: string[]; custom?: string };

// Where an ask stands. Only the first has something to act on.
type Standing =
  | { status: "answered"; callId: string; answers: Answer[]; messageId?: string }
  | { status: "pending"; callId: string; remainingMs: number; shown?: boolean }
  | { status: "waiting"; callId: string };

type Message = { id: string; content: { text?: string }[] };
type Problem = { code: string; detail: string };

function fail(text: string, code = 1): never {
  console.error(text);
  process.exit(code);
}

const pause = () => new Promise((done) => setTimeout(done, 1000));

// One request. Each can be sent again without harm, so a cut one is.
async function call<T>(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<T> {
  for (let left = tries - 1; ; left--, await pause()) {
    let status: number;
    let out: unknown;
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
    if (status === 200) return out as T;
    if ((status === 429 || status === 503) && left > 0) continue;
    const problem = out as Problem; // RFC 9457: code is for programs, detail for people
    fail(`refused: ${problem.code}: ${problem.detail}`, status === 410 ? 5 : 1);
  }
}

// ASCII JSON keeps control characters off the terminal.
const ascii = (value: unknown) =>
  JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function tell(word: string, answers: Answer[]) {
  for (const a of answers) {
    const skipped = a.selected.length === 0 && a.custom === undefined;
    console.log(`${word}: ${skipped ? `${a.id} was skipped, nothing was chosen` : ascii(a)}`);
  }
}

const { sessionId } = await call<{ sessionId: string }>("POST", "sessions", { agent: { name: "typescript example" }, key });
const session = `sessions/${sessionId}`;

// To be called once the answer was acted on. Dying before it costs nothing: the
// message comes again, with the same id.
async function acknowledge(...messageIds: string[]) {
  const { admitted } = await call<{ admitted: string[] }>("POST", `${session}/inbox/admit`, { messageIds });
  console.log(`acknowledged: ${admitted.length}`);
}

// What came while no process of this agent ran.
async function readInbox() {
  const { messages } = await call<{ messages: Message[] }>("POST", `${session}/inbox/claim`, { holder });
  for (const message of messages) {
    const text = message.content.map((part) => part.text ?? "").join("");
    let answers: unknown;
    try {
      answers = JSON.parse(text)?.answers;
    } catch {
      // a message of the person, not a reply
    }
    if (Array.isArray(answers)) tell("earlier", answers);
    else console.log(`message: ${ascii(text)}`);
  }
  if (messages.length > 0) await acknowledge(...messages.map((m) => m.id));
}

await readInbox();

const questions = [
  { id: "store", question: "Which store should sessions use?", options: [{ label: "Postgres" }, { label: "SQLite" }] },
];
let standing = await call<Standing>("POST", `${session}/asks`, { questions, timeout, holdMs, holder }, { "Idempotency-Key": crypto.randomUUID() });
const { callId } = standing;
const wait = (ms: number) => call<Standing>("GET", `${session}/asks/${callId}?holdMs=${ms}&holder=${holder}`);

// While the question is open there is nothing to decide: keep waiting.
while (standing.status === "waiting" || (standing.status === "pending" && standing.remainingMs > 0)) {
  console.log(
    standing.status === "waiting"
      ? "waiting: asked without a limit, so nothing goes on without the answer"
      : "open: only this request is over, the person still has time",
  );
  standing = await wait(holdMs);
}

let word = "answered";
if (standing.status === "pending") {
  // Not a skip and not permission. The question stays open for the person.
  console.log("pending: nobody answered in time, so nothing was chosen");
  console.log("working: on what does not depend on the answer");
  word = "late";
  const until = performance.now() + patienceMs;
  while (standing.status !== "answered") {
    const leftMs = Math.floor(until - performance.now());
    if (leftMs <= 0) {
      console.log("unanswered: what depends on it is not done; the next run finds the reply");
      process.exit(4);
    }
    standing = await wait(Math.min(holdMs, leftMs));
  }
}

tell(word, standing.answers);
if (standing.messageId !== undefined) await acknowledge(standing.messageId);

export {};
