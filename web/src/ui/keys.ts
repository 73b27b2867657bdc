// Keys. A single letter acts only while focus is in the card or on the page itself, never in a
// text field and never with a modifier; a card that has just arrived has no focus, so it gets none.

import type { Act } from "../protocol/step.ts";
import type { Card } from "../protocol/view.ts";

export function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLTextAreaElement || target.isContentEditable) return true;
  if (!(target instanceof HTMLInputElement)) return target instanceof HTMLSelectElement;
  return target.type !== "radio" && target.type !== "checkbox" && target.type !== "button";
}

export interface KeyLike {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  isComposing: boolean;
  keyCode: number;
  /** The key is held down. */
  repeat?: boolean;
  target: EventTarget | null;
}

/** What a key does in a card: an act, or a move of the focus. */
export type CardKey = { act: Act } | { focus: "own" } | { move: 1 | -1 } | undefined;

export function cardKey(event: KeyLike, card: Card, letters: boolean): CardKey {
  if (event.isComposing || event.keyCode === 229 || event.altKey) return undefined;
  if (event.ctrlKey || event.metaKey) {
    // A key that is still down from sending one card does not send the next.
    if (event.key !== "Enter" || event.repeat || card.state === "ended") return undefined;
    return { act: card.plan ? { act: "approve" } : { act: "submit" } };
  }
  if (isTextField(event.target) || card.locked) return undefined;
  const q = card.page ?? 0;
  const question = card.questions?.[q];
  if (!question || card.state === "ended" || card.state === "answered") return undefined;
  const options = question.options ?? [];
  const option = event.target instanceof HTMLInputElement ? event.target.dataset.o : undefined;
  if (option !== undefined && !card.plan) {
    const o = Number(option);
    if (event.key === "ArrowDown" || event.key === "ArrowRight") return { move: 1 };
    if (event.key === "ArrowUp" || event.key === "ArrowLeft") return { move: -1 };
    if (event.key === "Enter") return { act: { act: "select", q, o } };
    if (/^[1-9]$/.test(event.key)) {
      const wanted = Number(event.key) - 1;
      if (wanted < options.length) return { act: { act: "select", q, o: wanted } };
      return wanted === options.length ? { focus: "own" } : undefined;
    }
  }
  if (!letters) return undefined;
  switch (event.key) {
    case "r": {
      const o = options.findIndex((option) => option.recommended);
      return o < 0 || card.plan ? undefined : { act: { act: "select", q, o } };
    }
    case "o":
      return { focus: "own" };
    case "h":
      return { act: { act: "wait" } };
    case "x":
      return card.plan ? undefined : { act: { act: "skip", q, on: !question.skipped } };
    case "[":
      return q > 0 ? { act: { act: "page", to: q - 1 } } : undefined;
    case "]":
      return q + 1 < (card.questions?.length ?? 0)
        ? { act: { act: "page", to: q + 1 } }
        : undefined;
    default:
      return undefined;
  }
}
