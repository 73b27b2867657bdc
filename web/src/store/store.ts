// What the views draw from: snapshots of the module's views as signals, fetched again when the
// module says they are dirty, and when a number on show is about to change.

import { batch, type Signal, signal } from "@preact/signals";
import type {
  Card,
  CardsView,
  Countdown,
  RecordView,
  SessionsView,
  TranscriptView,
  Turn,
  ViewRequest,
} from "../protocol/view.ts";
import { untilNextMs } from "./remaining.ts";

export interface Viewer {
  view<T>(request: ViewRequest): T | undefined;
}

export interface Transcript extends Omit<TranscriptView, "turns" | "rev"> {
  /** By index, without gaps from `base` on. A turn keeps its identity until it changes. */
  turns: readonly Turn[];
}

interface Shown<T> {
  readonly value: Signal<T>;
  uses: number;
  rev: number;
}

const noCards: CardsView = { conn: "down" };

export class Store {
  readonly cards = signal<CardsView>(noCards);
  readonly sessions = signal<SessionsView>({});
  /** The wall clock when the cards were last read: what "today" is for the views. */
  readonly now = signal(0);
  readonly #cards = new Map<string, Shown<Card | undefined>>();
  readonly #transcripts = new Map<string, Shown<Transcript | undefined>>();
  readonly #records = new Map<string, Shown<RecordView | undefined>>();
  readonly #dirty = new Set<string>();
  readonly #wall: () => number;
  #viewer: Viewer | undefined;
  #flush: ReturnType<typeof setTimeout> | undefined;
  #ticker: ReturnType<typeof setTimeout> | undefined;

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** Reads everything on show anew, from this module on. */
  attach(viewer: Viewer): void {
    this.#viewer = viewer;
    for (const shown of this.#transcripts.values()) shown.rev = 0;
    this.#readAll();
  }

  /** `soon`: a person waits for it, so it is not put off to the next frame. */
  dirty(names: readonly string[], soon: boolean): void {
    for (const name of names) this.#dirty.add(name);
    if (soon) {
      clearTimeout(this.#flush);
      this.#flush = undefined;
      this.#readDirty();
    } else {
      // A stream may dirty a view a hundred times a second; sixteen milliseconds gather them.
      this.#flush ??= setTimeout(() => {
        this.#flush = undefined;
        this.#readDirty();
      }, 16);
    }
  }

  showCard(key: string): Signal<Card | undefined> {
    return this.#show(this.#cards, key, () => this.#readCard(key));
  }

  hideCard(key: string): void {
    hide(this.#cards, key);
  }

  showTranscript(sessionId: string): Signal<Transcript | undefined> {
    return this.#show(this.#transcripts, sessionId, () => this.#readTranscript(sessionId));
  }

  hideTranscript(sessionId: string): void {
    hide(this.#transcripts, sessionId);
  }

  showRecord(sessionId: string, callId: string): Signal<RecordView | undefined> {
    const id = recordId(sessionId, callId);
    return this.#show(this.#records, id, () => this.#readRecord(id));
  }

  hideRecord(sessionId: string, callId: string): void {
    hide(this.#records, recordId(sessionId, callId));
  }

  #show<T>(map: Map<string, Shown<T | undefined>>, id: string, read: () => void) {
    let shown = map.get(id);
    if (!shown) {
      shown = { value: signal<T | undefined>(undefined), uses: 0, rev: 0 };
      map.set(id, shown);
      read();
    }
    shown.uses++;
    return shown.value;
  }

  #readAll(): void {
    this.#dirty.clear();
    this.#readCards();
    this.#readSessions();
    for (const key of this.#cards.keys()) this.#readCard(key);
    for (const id of this.#transcripts.keys()) this.#readTranscript(id);
    for (const id of this.#records.keys()) this.#readRecord(id);
    this.#arm();
  }

  #readDirty(): void {
    const names = [...this.#dirty];
    this.#dirty.clear();
    for (const name of names) {
      const colon = name.indexOf(":");
      const id = name.slice(colon + 1);
      switch (colon < 0 ? name : name.slice(0, colon)) {
        case "cards":
          this.#readCards();
          break;
        case "sessions":
          this.#readSessions();
          break;
        case "card":
          if (this.#cards.has(id)) this.#readCard(id);
          break;
        case "transcript":
          if (this.#transcripts.has(id)) this.#readTranscript(id);
          for (const record of this.#records.keys()) {
            if (record.startsWith(`${id}\n`)) this.#readRecord(record);
          }
          break;
      }
    }
    this.#arm();
  }

  #readCards(): void {
    const view = this.#viewer?.view<CardsView>({ view: "cards" });
    if (!view) return;
    batch(() => {
      this.now.value = this.#wall();
      this.cards.value = view;
    });
  }

  #readSessions(): void {
    const view = this.#viewer?.view<SessionsView>({ view: "sessions" });
    if (view) this.sessions.value = view;
  }

  #readCard(key: string): void {
    const view = this.#viewer?.view<Partial<Card>>({ view: "card", key });
    const shown = this.#cards.get(key);
    if (shown && view) shown.value.value = isCard(view) ? view : undefined;
  }

  #readRecord(id: string): void {
    const [sessionId = "", callId = ""] = id.split("\n");
    const view = this.#viewer?.view<Partial<RecordView>>({ view: "record", sessionId, callId });
    const shown = this.#records.get(id);
    if (shown && view) shown.value.value = view.callId ? (view as RecordView) : undefined;
  }

  #readTranscript(sessionId: string): void {
    const shown = this.#transcripts.get(sessionId);
    if (!shown) return;
    const since = shown.rev;
    const view = this.#viewer?.view<TranscriptView>({
      view: "transcript",
      sessionId,
      ...(since > 0 ? { since } : {}),
    });
    if (!view?.sessionId) return;
    shown.rev = view.rev ?? 0;
    shown.value.value = mergeTranscript(since > 0 ? shown.value.value : undefined, view);
  }

  /** A countdown on show is read again when its text is about to change. */
  #arm(): void {
    clearTimeout(this.#ticker);
    let soonest = Number.POSITIVE_INFINITY;
    const consider = (countdown: Countdown | undefined): void => {
      if (countdown?.state !== "counting") return;
      soonest = Math.min(soonest, untilNextMs(countdown.remainingMs ?? 0));
    };
    for (const row of this.cards.value.cards ?? []) consider(row.countdown);
    for (const shown of this.#cards.values()) consider(shown.value.value?.countdown);
    if (soonest === Number.POSITIVE_INFINITY) return;
    this.#ticker = setTimeout(() => {
      this.#readCards();
      for (const key of this.#cards.keys()) this.#readCard(key);
      this.#arm();
    }, soonest);
  }
}

function hide<T>(map: Map<string, Shown<T>>, id: string): void {
  const shown = map.get(id);
  if (shown && --shown.uses <= 0) map.delete(id);
}

function recordId(sessionId: string, callId: string): string {
  return `${sessionId}\n${callId}`;
}

function isCard(view: Partial<Card>): view is Card {
  return typeof view.key === "string";
}

/** Lays what changed over what was known; turns that did not change stay the same objects. */
export function mergeTranscript(known: Transcript | undefined, view: TranscriptView): Transcript {
  const { turns: changed = [], rev: _rev, ...rest } = view;
  const base = view.base ?? 0;
  const kept = new Map<number, Turn>();
  if (known && !view.reset) {
    for (const turn of known.turns) if (turn.i >= base) kept.set(turn.i, turn);
  }
  for (const turn of changed) kept.set(turn.i, turn);
  const total = view.total ?? 0;
  const turns = [...kept.values()]
    .filter((turn) => turn.i >= base && turn.i < total)
    .sort((a, b) => a.i - b.i);
  return { ...rest, turns };
}
