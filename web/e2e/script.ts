// A scripted model that asks, carries on with other work, and reads what comes late.

const store = {
  id: "store",
  question: "Which store should sessions use?",
  header: "Database",
  options: [
    { label: "Postgres (Recommended)", description: "already in compose; migrations exist" },
    { label: "SQLite", description: "single file, no HA" },
  ],
};

const asking = (word: string, timeout: number, questions: object[] = [store]) => ({
  when: { last: "user", reply: false, contains: word },
  do: [{ text: "I will ask. " }, { call: "ask_user_question", arguments: { questions, timeout } }],
});

export interface ScriptOptions {
  /** What the agent does after it carried on. */
  work?: string;
}

export function script({ work = "echo other work" }: ScriptOptions = {}) {
  return {
    name: "e2e",
    rules: [
      asking("in a second", 3),
      asking("in a while", 60),
      asking("two things", 60, [
        store,
        { id: "name", question: "What shall it be called?", header: "Name" },
      ]),
      asking("never mind the time", -1),
      {
        when: { reply: true },
        do: [{ text: 'So it is {{answer "store"}}.' }],
      },
      {
        when: { tool: "ask_user_question", pending: true },
        do: [{ text: "Carrying on. " }, { call: "bash", arguments: { command: work } }],
      },
      {
        when: { tool: "ask_user_question", failed: true },
        do: [{ text: "No answer, so I stop here." }],
      },
      {
        when: { tool: "ask_user_question", pending: false },
        do: [{ text: 'You chose {{answer "store"}}.' }],
      },
      { when: { tool: "bash" }, do: [{ text: "The other work is done." }] },
      { when: { last: "user" }, do: [{ text: "Noted: {{last}}" }] },
    ],
  };
}
