import { describe, expect, it } from "vitest";
import { compositionTailMs, type EnterKey, EnterWatch } from "./enter.ts";

const enter = (over: Partial<EnterKey> = {}): EnterKey => ({
  key: "Enter",
  keyCode: 13,
  isComposing: false,
  shiftKey: false,
  timeStamp: 1_000,
  ...over,
});

describe("EnterWatch", () => {
  it("takes a plain Enter", () => {
    expect(new EnterWatch().isReal(enter())).toBe(true);
  });

  for (const { name, over } of [
    { name: "Shift+Enter", over: { shiftKey: true } },
    { name: "a key while composing", over: { isComposing: true } },
    { name: "key code 229", over: { keyCode: 229 } },
    { name: "another key", over: { key: "a" } },
  ]) {
    it(`leaves ${name} alone`, () => expect(new EnterWatch().isReal(enter(over))).toBe(false));
  }

  it("leaves the Enter that confirms a candidate alone, in Chrome's order", () => {
    const watch = new EnterWatch();
    watch.compositionStart();
    expect(watch.isReal(enter({ keyCode: 229, isComposing: true }))).toBe(false);
    watch.compositionEnd(1_000);
    expect(watch.isReal(enter({ timeStamp: 1_400 }))).toBe(true);
  });

  it("leaves it alone in Safari's order, where compositionend comes before the keydown", () => {
    const watch = new EnterWatch();
    watch.compositionStart();
    watch.compositionEnd(1_000);
    expect(watch.isReal(enter({ timeStamp: 1_000 }))).toBe(false);
    expect(watch.isReal(enter({ timeStamp: 1_000 + compositionTailMs - 1 }))).toBe(false);
    expect(watch.isReal(enter({ timeStamp: 1_000 + compositionTailMs }))).toBe(true);
  });

  it("knows of a composition that the event does not mention", () => {
    const watch = new EnterWatch();
    watch.compositionStart();
    expect(watch.isReal(enter())).toBe(false);
  });
});
