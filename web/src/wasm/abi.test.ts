import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ClientModule, ModuleError } from "./abi.ts";
import { instantiate } from "./load.ts";
import { loadModule, moduleBytes } from "./testmodule.ts";

const init = { type: "init", tab: "t", nonce: "0".repeat(32), stored: {} };

describe("the real module", () => {
  it("starts on the ten imports and says its digest", async () => {
    const { loaded } = await loadModule();
    const want = createHash("sha256").update(Buffer.from(moduleBytes())).digest("hex");
    expect(loaded.sha256).toBe(want);
  });

  it("answers step, view and check", async () => {
    const { module } = await loadModule();
    module.step(1_700_000_000_000, 5, init);
    expect(module.view(1, 5, { view: "cards" })).toMatchObject({ conn: "down", cards: [] });
    const questions = [{ id: "a", question: "Which?", options: [{ label: "x" }] }];
    const answers = [{ id: "a", selected: ["x"] }];
    expect(module.check({ check: "answer", questions, answer: { answers } })).toEqual({ ok: true });
    expect(module.check({ check: "answer", questions, answer: { answers: [] } })).toMatchObject({
      problem: { code: "BAD_ANSWER" },
    });
  });

  it("refuses bad input without dying", async () => {
    const { module } = await loadModule();
    module.step(1, 1, init);
    const refused = () => module.step(1, 2, { type: "no such input" });
    expect(refused).toThrow(ModuleError);
    expect(module.dead).toBe(false);
    expect(module.view(1, 3, { view: "sessions" })).toMatchObject({ sessions: [] });
  });

  it("takes text that holds half a surrogate pair", async () => {
    const { module } = await loadModule();
    const questions = [{ id: "a", question: "Which?" }];
    const answer = { answers: [{ id: "a", selected: [], custom: "half \ud83d, \\ud83d as text" }] };
    expect(module.check({ check: "answer", questions, answer })).toEqual({ ok: true });
  });

  it("keeps answering while its memory grows under it", async () => {
    const { module, loaded } = await loadModule();
    module.step(1, 1, init);
    const before = loaded.memory.buffer.byteLength;
    const question = "ü".repeat(9_000);
    const questions = Array.from({ length: 16 }, (_, i) => ({ id: `q${i}`, question }));
    for (let i = 0; i < 8; i++) {
      expect(module.check({ check: "ask", questions })).toEqual({ ok: true });
    }
    expect(loaded.memory.buffer.byteLength).toBeGreaterThan(before);
  });
});

describe("an instance that stops", () => {
  function fake(overrides: Partial<Record<string, unknown>>) {
    const memory = new WebAssembly.Memory({ initial: 1 });
    const write = (text: string, at: number): bigint => {
      const bytes = new TextEncoder().encode(text);
      new Uint8Array(memory.buffer).set(bytes, at);
      return (BigInt(at) << 32n) | BigInt(bytes.length);
    };
    const exports = {
      memory,
      abi: () => 1,
      alloc: () => 64,
      step: () => write('{"effects":[]}', 2_048),
      view: () => write("{}", 2_048),
      check: () => write("{}", 2_048),
      fold: () => write("{}", 2_048),
      ...overrides,
    } as unknown as WebAssembly.Exports;
    return { exports, memory, write };
  }

  it("is not called again after a trap", () => {
    let calls = 0;
    const { exports, memory } = fake({
      step: () => {
        calls++;
        throw new WebAssembly.RuntimeError("unreachable");
      },
    });
    const module = new ClientModule({ exports, memory });
    for (let i = 0; i < 2; i++) {
      const error = catching(() => module.step(1, 1, {}));
      expect(error).toMatchObject({ code: "TRAP", dead: true });
    }
    expect([calls, module.dead]).toEqual([1, true]);
  });

  it("is told apart from one that refused", () => {
    const at = { text: '{"error":{"code":"TRAP","message":"m"}}' };
    const made = fake({ check: () => made.write(at.text, 2_048) });
    const module = new ClientModule(made);
    expect(catching(() => module.check({}))).toMatchObject({ dead: true });
    expect(module.dead).toBe(true);
  });

  it("does not take a view's own error text for a failure", () => {
    const made = fake({ view: () => made.write('{"sessionId":"s","error":"damaged"}', 2_048) });
    const module = new ClientModule(made);
    expect(module.view(1, 1, { view: "cards" })).toEqual({ sessionId: "s", error: "damaged" });
  });

  it("reads results whose address has the high bit, and times as 64 bits", () => {
    const seen: bigint[] = [];
    const made = fake({
      step: (wall: bigint, mono: bigint) => {
        seen.push(wall, mono);
        return BigInt.asIntN(64, made.write('{"next":5}', 4_096));
      },
    });
    const module = new ClientModule(made);
    expect(module.step(1_800_000_000_123.9, 7.5, {})).toEqual({ next: 5 });
    expect(seen).toEqual([1_800_000_000_123n, 7n]);
  });

  it("refuses what the module has no room for", () => {
    const module = new ClientModule(fake({ alloc: () => 0 }));
    expect(catching(() => module.step(1, 1, {}))).toMatchObject({ code: "TOO_LARGE", dead: false });
  });

  it("refuses another abi, and a module with imports that the page lacks", async () => {
    expect(() => new ClientModule(fake({ abi: () => 2 }))).toThrow(/abi 2/);
    // (module (import "env" "f" (func)))
    const bytes = new Uint8Array([
      0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 9, 1, 3, 101, 110, 118, 1, 102, 0, 0,
    ]);
    await expect(instantiate(bytes.buffer)).rejects.toThrow(/env\.f/);
  });
});

function catching(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
