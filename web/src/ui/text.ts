// Text from an agent, made safe to read: characters that reorder or hide others are shown.

const overrides = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g;

const names: Record<string, string> = {
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u061c": "ALM",
};

/** Bidi controls become visible marks, so that a label cannot read as another. */
export function visible(text: string): string {
  return text.replace(overrides, (c) => `\u27e8${names[c] ?? "?"}\u27e9`);
}

/** Where a link leads, to be shown beside it; undefined when it may not be followed. */
export function linkHost(url: string): { href: string; host: string } | undefined {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return undefined;
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return undefined;
  return { href: parsed.href, host: parsed.host };
}

/** A moment as a time of day, with its date unless it lies on the same day as `now`. */
export function moment(at: number, now: number, locale: string): string {
  const time = new Intl.DateTimeFormat(locale, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const day = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric" });
  if (day.format(at) === day.format(now)) return time.format(at);
  const date = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric" });
  return `${date.format(at)} ${time.format(at)}`;
}
