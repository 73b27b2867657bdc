// The extension's ear: it keeps the number on the button and the notifications right while nothing
// is open, and sends what a notification's button says.
//
// It is a client like the page, with the same module, but it only watches: it claims no wait, since
// nobody looks at a card here, so it stops no clock and ends no ask. The host's own deadline runs
// on, and popup, panel and page claim for themselves. The deliveries it holds are the way an
// answer goes out.
//
// States: stopped → running (paired) → stopped (unpaired, refused). The browser may end the worker
// at any moment; start is then called again. The session list and the pending deliveries come again
// from the host under the same ids; the set of announced asks is kept, so none is told twice.
//
// Limits: announcedMax remembered asks, pressMaxMs for a button to do its work.

import type { Effect } from "../protocol/step.ts";
import type { Card, CardsView, Row } from "../protocol/view.ts";
import { Link, type LinkState, type Socket } from "../rpc/link.ts";
import { type Peer, unknownMethod } from "../rpc/peer.ts";
import { post } from "../rpc/post.ts";
import { type Clock, Driver, type Machine, type Shown } from "../store/driver.ts";
import type { NoticeOptions } from "./api.ts";
import type { Offer } from "./notice.ts";

/** More than a host lists at once for one person; the oldest are forgotten first. */
export const announcedMax = 2_000;
/** A press that could not be carried out by then is reported as not sent. */
export const pressMaxMs = 20_000;

export interface Badge {
  needs: number;
  state: LinkState;
}

export interface WatcherOptions {
  base: string;
  token: string;
  version: string;
  clock: Clock;
  draw: () => string;
  machine: () => Promise<{ machine: Machine; sha256: string }>;
  announced: { read(): string | null; write(text: string): void };
  notices: () => boolean;
  badge: (badge: Badge) => void;
  describe: (card: Card) => NoticeOptions & { offer?: Offer };
  show: (key: string, notice: NoticeOptions) => void;
  clear: (key: string) => void;
  /** A button's answer could not be sent. */
  notSent: (key: string, row: Row | undefined, label: string) => void;
  /** The host takes this token no more. */
  refused: () => void;
  openSocket?: (url: string, protocol: string) => Socket;
}

interface Press {
  key: string;
  offer: Offer;
  sent: boolean;
  timer: ReturnType<typeof setTimeout>;
}

export class Watcher {
  readonly #options: WatcherOptions;
  readonly #link: Link;
  readonly #announced: Map<string, Offer | null>;
  readonly #presses = new Map<string, Press>();
  #driver: Driver | undefined;
  #sha256 = "";
  #starting: Promise<void> | undefined;
  #stopped = false;

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#announced = readAnnounced(options.announced.read());
    this.#link = new Link({
      url: `${options.base.replace(/^http/, "ws")}/rpc`,
      client: { name: "extension", version: options.version },
      token: () => options.token,
      serve: (incoming) =>
        incoming.method === "user-questions/request" && this.#driver
          ? this.#driver.serve(incoming)
          : Promise.reject(unknownMethod(incoming.method)),
      notice: (method, params) => this.#driver?.send({ type: "notify", method, params }),
      onState: (state) => {
        this.#badge();
        if (state === "signedOut") options.refused();
      },
      onOnline: (welcome) =>
        this.#driver?.send({
          type: "up",
          clientId: welcome.clientId,
          scopes: welcome.scopes,
          protocol: welcome.protocol,
          sha256: welcome.moduleSha256,
          // The module is bundled: it stays while the protocol is the same.
          build: { sha256: this.#sha256 || welcome.moduleSha256, reload: false },
        }),
      onOffline: () => this.#driver?.down(),
      ...(options.openSocket ? { open: options.openSocket } : {}),
    });
  }

  /** Starts, or wakes what runs already: an alarm calls it without asking. */
  start(): Promise<void> {
    this.#starting ??= this.#boot();
    return this.#starting.then(() => {
      if (this.#stopped) return;
      if (this.#link.state === "idle") this.#link.start();
      else this.#link.wake();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#link.stop();
    this.#driver?.stop();
    this.#driver = undefined;
    for (const press of this.#presses.values()) clearTimeout(press.timer);
    this.#presses.clear();
  }

  /** The first button of a notification: what it named is sent, and nothing else. */
  async press(key: string): Promise<void> {
    const offer = this.#announced.get(key);
    if (!offer || this.#presses.has(key)) return;
    this.#presses.set(key, {
      key,
      offer,
      sent: false,
      timer: setTimeout(() => this.#giveUp(key), pressMaxMs),
    });
    await this.start();
    this.#carryOut();
  }

  async #boot(): Promise<void> {
    const { clock, draw, machine } = this.#options;
    const made = await machine();
    if (this.#stopped) return;
    this.#sha256 = made.sha256;
    this.#driver = new Driver({
      machine: made.machine,
      clock,
      items: { set: () => {}, remove: () => {} },
      peer: () => withoutClaims(this.#link.peer),
      post: (method, params, signal) => {
        const { base, token } = this.#options;
        return post(method, params, { url: `${base}/rpc`, token, signal });
      },
      onDirty: (names) => {
        if (names.includes("cards")) this.#cardsChanged();
      },
      onShown: (effect) => this.#shown(effect),
      onDead: (error) => {
        // A stopped instance is thrown away; the next start makes another.
        console.error(error);
        this.#driver = undefined;
        this.#starting = undefined;
        this.#link.stop();
      },
    });
    this.#driver.send({
      type: "init",
      tab: "watcher",
      nonce: draw(),
      stored: {},
      settings: { notify: true },
      visible: false,
    });
  }

  #cards(): CardsView | undefined {
    return this.#driver?.view<CardsView>({ view: "cards" });
  }

  #card(key: string): Card | undefined {
    const card = this.#driver?.view<Partial<Card>>({ view: "card", key });
    return card?.key === undefined ? undefined : (card as Card);
  }

  #cardsChanged(): void {
    this.#badge();
    this.#carryOut();
    this.#forget();
  }

  #badge(): void {
    this.#options.badge({ needs: this.#cards()?.needs ?? 0, state: this.#link.state });
  }

  #shown(effect: Shown | Extract<Effect, { do: "announce" }>): void {
    if (effect.do === "unnotify") {
      this.#options.clear(effect.key);
      return;
    }
    if (effect.do !== "notify" || !this.#options.notices()) return;
    if (this.#announced.has(effect.key)) return;
    const card = this.#card(effect.key);
    if (!card) return;
    const { offer, ...notice } = this.#options.describe(card);
    this.#announced.set(effect.key, offer ?? null);
    this.#keep();
    this.#options.show(effect.key, notice);
  }

  /** Once the whole list is known, an ask that it does not hold will not come back. */
  #forget(): void {
    const view = this.#cards();
    if (view?.conn !== "up" || !view.known) return;
    const listed = new Set(
      (view.cards ?? []).filter((row) => row.group !== "answered").map((row) => row.key),
    );
    let changed = false;
    for (const key of [...this.#announced.keys()]) {
      if (listed.has(key) || this.#presses.has(key)) continue;
      this.#announced.delete(key);
      this.#options.clear(key);
      changed = true;
    }
    if (changed) this.#keep();
  }

  #keep(): void {
    const kept = [...this.#announced].slice(-announcedMax);
    this.#options.announced.write(JSON.stringify(kept));
  }

  #carryOut(): void {
    for (const press of [...this.#presses.values()]) {
      const card = this.#card(press.key);
      if (!card) {
        if (press.sent || this.#cards()?.known) this.#done(press.key);
        continue;
      }
      if (card.state !== "open" && card.state !== "continued") {
        this.#done(press.key);
      } else if (press.sent) {
        // Raced, refused or not accepted: what happens next is the person's to say.
        if (card.hint || card.refused) this.#giveUp(press.key);
      } else if (card.submit) {
        const option = card.questions?.[0]?.options?.[press.offer.o];
        if (card.questions?.length !== 1 || option?.label !== press.offer.label) {
          this.#giveUp(press.key);
          continue;
        }
        press.sent = true;
        if (!card.questions[0]?.selected?.includes(press.offer.o)) {
          this.#driver?.send({
            type: "act",
            key: press.key,
            act: "select",
            q: 0,
            o: press.offer.o,
          });
        }
        this.#driver?.send({ type: "act", key: press.key, act: "submit" });
      }
    }
  }

  #done(key: string): void {
    const press = this.#presses.get(key);
    if (!press) return;
    clearTimeout(press.timer);
    this.#presses.delete(key);
    this.#options.clear(key);
  }

  #giveUp(key: string): void {
    const press = this.#presses.get(key);
    if (!press) return;
    clearTimeout(press.timer);
    this.#presses.delete(key);
    const row = this.#cards()?.cards?.find((each) => each.key === key);
    this.#options.notSent(key, row, press.offer.label);
  }
}

/** A claim says that somebody sees the card. Nobody does here. */
function withoutClaims(peer: Peer | undefined): Pick<Peer, "call"> | undefined {
  if (!peer) return undefined;
  return {
    call: (method, params, options) =>
      method === "userQuestions/attachWait"
        ? new Promise<never>(() => {})
        : peer.call(method, params, options),
  };
}

function readAnnounced(text: string | null): Map<string, Offer | null> {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    return new Map(Array.isArray(list) ? (list as [string, Offer | null][]) : []);
  } catch {
    return new Map();
  }
}
