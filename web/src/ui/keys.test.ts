import { describe, expect, it } from "vitest";
import type { Card } from "../protocol/view.ts";
import { cardKey, isTextField, type KeyLike } from "./keys.ts";

const card: Card = {
  key: "k",
  group: "needs",
  sessionId: "s",
  state: "open",
  page: 0,
  questions: [
    { id: "a", question: "?", options: [{ label: "x", recommended: true }, { label: "y" }] },
    { id: "b", question: "?" },
  ],
};

function element(tag: string, set: (e: HTMLInputElement) => void = () => {}): HTMLElement {
  const made = document.createElement(tag);
  set(made as HTMLInputElement);
  return made;
}
const option = element("input", (e) => {
  e.type = "radio";
  e.dataset.o = "1";
});
const area = element("textarea");
const button = element("button");

const press = (key: string, target: HTMLElement, over: Partial<KeyLike> = {}): KeyLike => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  isComposing: false,
  keyCode: 0,
  target,
  ...over,
});

describe("keys in a card", () => {
  const cases: { name: string; key: KeyLike; want: unknown; card?: Card; letters?: boolean }[] = [
    {
      name: "a digit on an option",
      key: press("2", option),
      want: { act: { act: "select", q: 0, o: 1 } },
    },
    { name: "the digit after the options", key: press("3", option), want: { focus: "own" } },
    { name: "a digit beyond", key: press("9", option), want: undefined },
    { name: "a digit in the text field", key: press("2", area), want: undefined },
    { name: "a digit on a button", key: press("2", button), want: undefined },
    {
      name: "Enter on an option",
      key: press("Enter", option),
      want: { act: { act: "select", q: 0, o: 1 } },
    },
    { name: "an arrow on an option", key: press("ArrowDown", option), want: { move: 1 } },
    {
      name: "Ctrl+Enter",
      key: press("Enter", area, { ctrlKey: true }),
      want: { act: { act: "submit" } },
    },
    {
      name: "Ctrl+Enter that is held down",
      key: press("Enter", area, { ctrlKey: true, repeat: true }),
      want: undefined,
    },
    { name: "r", key: press("r", option), want: { act: { act: "select", q: 0, o: 0 } } },
    { name: "r in the text field", key: press("r", area), want: undefined },
    { name: "h", key: press("h", button), want: { act: { act: "wait" } } },
    { name: "x", key: press("x", option), want: { act: { act: "skip", q: 0, on: true } } },
    { name: "]", key: press("]", option), want: { act: { act: "page", to: 1 } } },
    { name: "[ on the first", key: press("[", option), want: undefined },
    {
      name: "Ctrl+Enter in the text field",
      key: press("Enter", area, { ctrlKey: true }),
      want: { act: { act: "submit" } },
    },
    {
      name: "Meta+Enter",
      key: press("Enter", option, { metaKey: true }),
      want: { act: { act: "submit" } },
    },
    {
      name: "Ctrl+Enter of a composition",
      key: press("Enter", area, { ctrlKey: true, isComposing: true }),
      want: undefined,
    },
    { name: "Alt+h", key: press("h", button, { altKey: true }), want: undefined },
    { name: "Ctrl+r", key: press("r", option, { ctrlKey: true }), want: undefined },
    { name: "letters off", key: press("h", option), want: undefined, letters: false },
    {
      name: "digits with letters off",
      key: press("1", option),
      want: { act: { act: "select", q: 0, o: 0 } },
      letters: false,
    },
    {
      name: "a locked card",
      key: press("1", option),
      want: undefined,
      card: { ...card, locked: true },
    },
    {
      name: "an ended card",
      key: press("h", option),
      want: undefined,
      card: { ...card, state: "ended" },
    },
  ];
  for (const { name, key, want, card: over, letters } of cases) {
    it(name, () => expect(cardKey(key, over ?? card, letters ?? true)).toEqual(want));
  }

  it("knows a text field from an option", () => {
    expect([
      isTextField(area),
      isTextField(option),
      isTextField(button),
      isTextField(null),
    ]).toEqual([true, false, false, false]);
  });
});
