import { signal } from "@preact/signals";
import { render } from "preact";
import { beforeEach, describe, expect, it } from "vitest";
import type { App } from "../app/app.ts";
import type { Act } from "../protocol/step.ts";
import type { AskNode, AskState, Node, Turn } from "../protocol/view.ts";
import { AppContext } from "./context.ts";
import { NodeView } from "./nodes.tsx";
import { en } from "./strings/index.ts";

const turn: Turn = { i: 0, turn: 12, state: "completed" };
let root: HTMLElement;
let done: string[];

beforeEach(() => {
  root = document.createElement("div");
  done = [];
});

function draw(node: Node): HTMLElement {
  const app = {
    strings: signal(en),
    store: { now: signal(0) },
    act: (key: string, { act }: Act) => done.push(`${act} ${key}`),
    openCard: (key: string) => done.push(`open ${key}`),
    fold: (_session: string, key: string, open: boolean) => done.push(`fold ${key} ${open}`),
  } as unknown as App;
  render(
    <AppContext.Provider value={app}>
      <NodeView node={node} sessionId="s" turn={turn} />
    </AppContext.Provider>,
    root,
  );
  return root;
}

describe("the row of an ask", () => {
  const cases: { ask: AskState; over?: Partial<AskNode>; says: string; actions?: string[] }[] = [
    {
      ask: "waiting",
      over: { actions: ["open"] },
      says: "Waiting for your answer",
      actions: ["Open"],
    },
    { ask: "waiting", over: { of: 3 }, says: "3 questions, waiting for your answer" },
    {
      ask: "pending",
      over: { actions: ["answer"] },
      says: "Not answered yet",
      actions: ["Answer"],
    },
    {
      ask: "queued",
      over: { actions: ["view", "cancel"] },
      says: "Answer on its way",
      actions: ["View answers", "Take back"],
    },
    { ask: "answered", over: { n: 1, of: 2 }, says: "Answered 1 of 2" },
    { ask: "cancelled", says: "Closed without an answer" },
    { ask: "interrupted", says: "Interrupted, nobody answered" },
    { ask: "withdrawn", says: "Withdrawn by the agent" },
    { ask: "closed", says: "Ended without an answer" },
    {
      ask: "error",
      over: { code: "BAD_TIMEOUT" },
      says: "Not asked, the agent's call was wrong: BAD_TIMEOUT",
    },
    { ask: "ambiguous", over: { n: 4 }, says: "4 questions" },
  ];
  for (const { ask, over, says, actions = [] } of cases) {
    it(`says "${says}"`, () => {
      const shown = draw({ k: "ask", callId: "c", key: "K", of: 1, ask, ...over });
      expect(shown.querySelector(".ask-state")?.textContent).toBe(says);
      expect([...shown.querySelectorAll("button")].map((button) => button.textContent)).toEqual(
        actions,
      );
    });
  }

  it("opens, answers and takes back by the card's key", () => {
    const shown = draw({
      k: "ask",
      callId: "c",
      key: "K",
      ask: "pending",
      actions: ["open", "answer", "cancel"],
    });
    for (const button of shown.querySelectorAll("button")) button.click();
    expect(done).toEqual(["open K", "open K", "cancelReply K"]);
  });
});

describe("a late answer", () => {
  it("shows its pairs, who sent it and where it was read", () => {
    const shown = draw({
      k: "reply",
      id: "m",
      callId: "c",
      by: "Phone",
      pairs: [
        { question: "Which?", selected: ["SQLite"] },
        { question: "Name?", custom: "meanwhile" },
        { question: "Else?" },
      ],
    });
    expect(shown.querySelector(".n-kind")?.textContent).toBe(
      "Late answer from Phone · Read in turn 12",
    );
    expect([...shown.querySelectorAll("dd")].map((each) => each.textContent)).toEqual([
      "SQLite",
      "meanwhile",
      "Skipped",
    ]);
  });

  it("shows an unreadable payload as its text", () => {
    expect(draw({ k: "reply", id: "m", raw: '{"kind":' }).querySelector("pre")?.textContent).toBe(
      '{"kind":',
    );
  });
});

describe("other nodes", () => {
  it("a message that looks like a late answer is a message", () => {
    const text = '{"kind":"answer_to_pending_question","callId":"c"}';
    const shown = draw({ k: "user", id: "m", text });
    expect(shown.querySelector(".said")?.textContent).toBe(text);
    expect(shown.querySelector(".reply")).toBeNull();
  });

  it("a disclosure asks for the other state and tells its own", () => {
    const shown = draw({ k: "turn", key: "t1", open: false, steps: 3, tools: 1, replies: 1 });
    const button = shown.querySelector("button");
    expect(button?.textContent).toBe("3 steps, 1 tool call · 1 late answer");
    expect(button?.getAttribute("aria-expanded")).toBe("false");
    button?.click();
    expect(done).toEqual(["fold t1 true"]);
  });

  it("an open group of one is left out, and a closed one is not", () => {
    const group = { k: "group", key: "g", n: 1 } as const;
    expect(draw({ ...group, open: true }).querySelector("button")).toBeNull();
    expect(draw({ ...group, open: true, n: 2 }).querySelector("button")).not.toBeNull();
    const button = draw({ ...group, open: false }).querySelector("button");
    expect(button?.textContent).toBe("1 item");
    button?.click();
    expect(draw({ ...group, open: true }).querySelector("button")).not.toBeNull();
  });

  it("a command reads as itself, also when its arguments were cut", () => {
    const args = JSON.stringify({ command: "make\n  test" });
    expect(draw({ k: "tool", name: "bash", state: "done", args }).textContent).toContain(
      "make test",
    );
    const cut = draw({
      k: "tool",
      name: "bash",
      state: "error",
      code: "BASH_TIMEOUT",
      args: '{"comm',
    });
    expect(cut.textContent).toContain('{"comm');
    expect(cut.textContent).toContain("BASH_TIMEOUT");
  });

  it("a node of a later module is left out", () => {
    expect(draw({ k: "hologram" } as unknown as Node).textContent).toBe("");
  });
});
