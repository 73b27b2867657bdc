import { beforeEach, describe, expect, it } from "vitest";
import { Keys } from "./keys.ts";
import { ownTab } from "./tab.ts";

/** Locks of one origin: a request waits while another holds the name. */
function lockManager() {
  const held = new Set<string>();
  const locks = {
    request: (name: string, { signal }: { signal: AbortSignal }, run: () => Promise<never>) => {
      if (!held.has(name)) {
        held.add(name);
        return run();
      }
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    },
  } as unknown as LockManager;
  return { locks, held };
}

beforeEach(() => {
  sessionStorage.clear();
});

const keys = () =>
  new Keys(
    () => localStorage,
    () => sessionStorage,
  );

describe("ownTab", () => {
  it("keeps its id over a reload", async () => {
    const { locks, held } = lockManager();
    const first = await ownTab(keys(), () => "a", locks);
    held.clear(); // the page is gone, and its lock with it
    expect([first, await ownTab(keys(), () => "b", locks)]).toEqual(["a", "a"]);
  });

  it("draws another when a duplicated tab has it, and keeps that one", async () => {
    const { locks } = lockManager();
    await ownTab(keys(), () => "a", locks);
    expect(await ownTab(keys(), () => "b", locks)).toBe("b");
    expect(keys().tab(() => "c")).toBe("b");
  });

  it("does without locks", async () => {
    expect(await ownTab(keys(), () => "a", undefined)).toBe("a");
  });
});
