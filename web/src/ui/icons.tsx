// The few icons of the page, drawn here: strokes of one weight on a 20 by 20 field.

import type { VNode } from "preact";

const paths = {
  inbox:
    "M3 11l2.2-6.2A1.2 1.2 0 0 1 6.3 4h7.4c.5 0 1 .3 1.1.8L17 11v4a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1zM3 11h4l1 2h4l1-2h4",
  sessions: "M4 5h12M4 10h12M4 15h7",
  settings: "M4 6h6M14 6h2M4 14h2M10 14h6M12 6a2 2 0 1 0 0 .01M8 14a2 2 0 1 0 0 .01",
  back: "M12 4l-6 6 6 6",
  close: "M5 5l10 10M15 5L5 15",
  away: "M5 8l5 5 5-5",
  next: "M8 4l6 6-6 6",
  clock: "M10 3.5a6.5 6.5 0 1 0 .01 0M10 6.5V10l2.4 1.6",
  soon: "M6 3.5h8M6 16.5h8M7 3.5v2.5c0 2.2 6 2.8 6 5v5.5M13 3.5v2.5c0 2.2-6 2.8-6 5v5.5",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  fold: "M8 6l4 4-4 4",
  plus: "M10 4v12M4 10h12",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  pen: "M4 16l.8-3.2L13 4.6l2.4 2.4-8.2 8.2z",
  question: "M7.5 7.6A2.5 2.5 0 1 1 10 10.4v1.1M10 14.4h.01",
  tool: "M5 6l4 4-4 4M11 14h4",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }): VNode {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
