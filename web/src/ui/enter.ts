// Is this Enter the person's, or the input method's? An Enter that confirms a candidate arrives as
// a keydown too: while composing, with key code 229, or, in Safari's order, right after the
// compositionend. Only a real Enter may move on.

/** An Enter this soon after a composition belongs to it. */
export const compositionTailMs = 50;

export interface EnterKey {
  key: string;
  keyCode: number;
  isComposing: boolean;
  shiftKey: boolean;
  timeStamp: number;
}

export class EnterWatch {
  #composing = false;
  #endedAt = Number.NEGATIVE_INFINITY;

  compositionStart(): void {
    this.#composing = true;
  }

  compositionEnd(timeStamp: number): void {
    this.#composing = false;
    this.#endedAt = timeStamp;
  }

  /** True for an Enter that the person meant; Shift+Enter is a line break and not meant here. */
  isReal(event: EnterKey): boolean {
    if (event.key !== "Enter" || event.shiftKey) return false;
    if (this.#composing || event.isComposing || event.keyCode === 229) return false;
    return event.timeStamp - this.#endedAt >= compositionTailMs;
  }
}
