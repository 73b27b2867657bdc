// Where the page keeps things in the browser. A storage that throws (forbidden, full) costs a
// note, never the page: the caller is told, and what matters stays in memory.

/** The module's own items: it reads and writes them through effects only. */
export const modulePrefix = "mw/";

const tokenKey = "meanwhile/token";
const settingsKey = "meanwhile/settings";
const tabKey = "meanwhile/tab";
/** A message that is not sent yet, by its place. */
const wordsPrefix = "meanwhile/words/";
const reloadedForKey = "meanwhile/reloaded-for";

export interface Preferences {
  language: "auto" | "en" | "zh";
  theme: "auto" | "light" | "dark";
  /** Single-letter shortcuts. */
  letters: boolean;
  notify: boolean;
  /** The host tells this browser by Web Push, so the page need not. */
  push: boolean;
  sound: boolean;
  /** Quiet hours as "22:00-07:00" in local time; "" is none. */
  quiet: string;
  /** An edited, untouched card carries on after this long; 0 is never. */
  carryOnMs: number;
}

export const defaults: Preferences = {
  language: "auto",
  theme: "auto",
  letters: true,
  notify: false,
  push: false,
  sound: true,
  quiet: "",
  carryOnMs: 0,
};

export class Keys {
  readonly #local: Storage | undefined;
  readonly #session: Storage | undefined;
  readonly #memory = new Map<string, string>();

  constructor(local: () => Storage, session: () => Storage) {
    this.#local = attempt(local);
    this.#session = attempt(session);
  }

  /** False when this browser gives no storage at all. */
  get durable(): boolean {
    return this.#local !== undefined;
  }

  moduleItems(): Record<string, string> {
    const items: Record<string, string> = {};
    const local = this.#local;
    if (!local) return items;
    for (let i = 0; i < local.length; i++) {
      const key = local.key(i);
      if (!key?.startsWith(modulePrefix)) continue;
      const value = local.getItem(key);
      if (value !== null) items[key] = value;
    }
    return items;
  }

  /** Throws what the browser throws; the module hears of it. */
  set(key: string, value: string): void {
    if (!this.#local) throw new Error("no storage");
    this.#local.setItem(key, value);
  }

  remove(key: string): void {
    if (!this.#local) throw new Error("no storage");
    this.#local.removeItem(key);
  }

  get token(): string | undefined {
    return this.#read(this.#local, tokenKey);
  }

  set token(value: string | undefined) {
    this.#write(this.#local, tokenKey, value);
  }

  get preferences(): Preferences {
    const text = this.#read(this.#local, settingsKey);
    if (text === undefined) return { ...defaults };
    try {
      return readPreferences(JSON.parse(text));
    } catch {
      return { ...defaults };
    }
  }

  set preferences(value: Preferences) {
    this.#write(this.#local, settingsKey, JSON.stringify(value));
  }

  /** What was being written in a place: this page's own words first, then what storage has. */
  words(place: string): string {
    const key = wordsPrefix + place;
    const words = this.#memory.get(key) ?? this.#read(this.#local, key) ?? "";
    if (words !== "") this.#memory.set(key, words);
    return words;
  }

  /** Without words the item goes, unless another tab has written its own. */
  keepWords(place: string, words: string): void {
    const key = wordsPrefix + place;
    const stored = attempt(() => this.#local?.getItem(key) ?? undefined);
    if (words !== "") this.#write(this.#local, key, words);
    else if (stored === this.#memory.get(key)) this.#write(this.#local, key, undefined);
    else this.#memory.delete(key);
  }

  /** The id of this tab, kept over reloads. */
  tab(draw: () => string): string {
    return this.#read(this.#session, tabKey) || this.newTab(draw);
  }

  newTab(draw: () => string): string {
    const drawn = draw();
    this.#write(this.#session, tabKey, drawn);
    return drawn;
  }

  /** True the first time it is asked for this build: the page reloads once for a build, not for ever. */
  firstReloadFor(sha256: string): boolean {
    if (this.#read(this.#session, reloadedForKey) === sha256) return false;
    this.#write(this.#session, reloadedForKey, sha256);
    return true;
  }

  #read(storage: Storage | undefined, key: string): string | undefined {
    const kept = attempt(() => storage?.getItem(key) ?? undefined);
    return kept ?? this.#memory.get(key);
  }

  #write(storage: Storage | undefined, key: string, value: string | undefined): void {
    if (value === undefined) this.#memory.delete(key);
    else this.#memory.set(key, value);
    attempt(() => (value === undefined ? storage?.removeItem(key) : storage?.setItem(key, value)));
  }
}

function readPreferences(doc: unknown): Preferences {
  const from = (typeof doc === "object" && doc !== null ? doc : {}) as Partial<Preferences>;
  return {
    language: from.language === "en" || from.language === "zh" ? from.language : "auto",
    theme: from.theme === "light" || from.theme === "dark" ? from.theme : "auto",
    letters: from.letters !== false,
    notify: from.notify === true,
    push: from.push === true,
    sound: from.sound !== false,
    quiet: typeof from.quiet === "string" ? from.quiet : "",
    carryOnMs: typeof from.carryOnMs === "number" && from.carryOnMs > 0 ? from.carryOnMs : 0,
  };
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
