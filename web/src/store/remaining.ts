// How finely a remaining time is shown, and so when its text changes next: under a minute by the
// second, under ten minutes by fifteen seconds, else by the minute.

const second = 1_000;
const minute = 60_000;

export type Remaining =
  | { unit: "clock"; minutes: number; seconds: number }
  | { unit: "seconds"; seconds: number }
  | { unit: "minutes"; minutes: number }
  | { unit: "hours"; hours: number; minutes: number }
  | { unit: "days"; days: number; hours: number };

function grainMs(remainingMs: number): number {
  if (remainingMs <= minute) return second;
  if (remainingMs <= 10 * minute) return 15 * second;
  return minute;
}

/** Rounded up to its grain: a countdown shows zero only at zero. */
function shownMs(remainingMs: number): number {
  const left = Math.max(0, remainingMs);
  const grain = grainMs(left);
  return Math.ceil(left / grain) * grain;
}

export function remaining(remainingMs: number): Remaining {
  const shown = shownMs(remainingMs);
  const seconds = shown / second;
  if (shown <= 10 * minute) {
    return shown < minute
      ? { unit: "seconds", seconds }
      : { unit: "clock", minutes: Math.floor(seconds / 60), seconds: seconds % 60 };
  }
  const minutes = Math.ceil(shown / minute);
  if (minutes < 60) return { unit: "minutes", minutes };
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return { unit: "hours", hours, minutes: minutes % 60 };
  return { unit: "days", days: Math.floor(hours / 24), hours: hours % 24 };
}

/** How long the text of this remaining time stays right. Infinite once there is nothing left. */
export function untilNextMs(remainingMs: number): number {
  if (remainingMs <= 0) return Number.POSITIVE_INFINITY;
  const shown = shownMs(remainingMs);
  // The text holds down to the next lower step of its grain, and a little less is asked for.
  const lower = shown - grainMs(shown);
  return Math.max(50, remainingMs - Math.max(0, lower) + 5);
}
