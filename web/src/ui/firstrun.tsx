// The first visit: how an agent comes to ask here.

import type { VNode } from "preact";
import { useApp, useStrings } from "./context.ts";

const commands: readonly { agent: string; command: string }[] = [
  { agent: "Claude Code", command: "meanwhile install claude-code" },
  { agent: "Codex", command: "meanwhile install codex" },
  { agent: "Gemini CLI", command: "meanwhile install gemini" },
  { agent: "Cursor", command: "meanwhile install cursor" },
  { agent: "MCP", command: "meanwhile mcp" },
];

export function FirstRun(): VNode {
  const app = useApp();
  const s = useStrings();
  return (
    <section class="first">
      <h2>{s.connectAgent}</h2>
      <p>{s.connectIntro}</p>
      <dl>
        {commands.map(({ agent, command }) => (
          <div key={agent}>
            <dt>{agent}</dt>
            <dd>
              <code translate={false}>{command}</code>
            </dd>
          </div>
        ))}
      </dl>
      <p class="waiting">
        <span>{s.waitingFirst}</span>
      </p>
      <p class="faint">{s.orCreate}</p>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          app.go({ at: "sessions" });
          // The field is there once the page has drawn the place.
          requestAnimationFrame(() => document.querySelector<HTMLElement>("[data-new]")?.focus());
        }}
      >
        {s.newSession}
      </button>
    </section>
  );
}
