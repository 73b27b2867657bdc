// The composition root of the page: it joins the module, the connection, the browser's storage and
// the views, and passes what happens in one to the others. It decides nothing about questions.

import { computed, signal } from "@preact/signals";
import type { Act, Settings } from "../protocol/step.ts";
import { agentName, type Row } from "../protocol/view.ts";
import { isObject } from "../rpc/frame.ts";
import { Link, type LinkState, type Socket, type Welcome } from "../rpc/link.ts";
import { unknownMethod } from "../rpc/peer.ts";
import { post } from "../rpc/post.ts";
import { type Clock, Driver, type Machine, type Shown } from "../store/driver.ts";
import type { Keys, Preferences } from "../store/keys.ts";
import { Store } from "../store/store.ts";
import { ownTab } from "../store/tab.ts";
import { type Strings, stringsFor } from "../ui/strings/index.ts";
import { isQuiet, minuteOf } from "../worker/device.ts";
import { formatRoute, parseRoute, type Route } from "./route.ts";
import { sentence } from "./say.ts";
import { deviceLabel, exchange, revoke, takeCode } from "./signin.ts";

/** A module that stops more often than this in one visit is not started again. */
export const moduleRestartsMax = 3;

/** A longer title is cut before it is sent. */
const titleCharsMax = 200;

export interface Environment {
  clock: Clock;
  keys: Keys;
  /** A fresh instance of the module. */
  machine: () => Promise<{ machine: Machine; sha256: string }>;
  draw: () => string;
  version: string;
  window: Window & typeof globalThis;
  openSocket?: (url: string, protocol: string) => Socket;
  /** The host's origin, for a place that the host does not serve itself; absent: the page's own. */
  base?: string;
  /** What the host calls this client; absent: "page". */
  name?: string;
  /** False where a reload brings no other module; absent: true. */
  reloads?: boolean;
}

export interface LinkInfo {
  state: LinkState;
  retryInMs?: number;
}

export class App {
  readonly store: Store;
  readonly preferences;
  readonly strings;
  readonly route;
  readonly link = signal<LinkInfo>({ state: "idle" });
  readonly welcome = signal<Welcome | undefined>(undefined);
  /** The polite status line. */
  readonly line = signal("");
  readonly fatal = signal<string | undefined>(undefined);
  readonly signIn = signal<"none" | "busy" | "bad" | "network">("none");
  /** The card a person just opened: it may take focus once, if its view allows it. */
  readonly opened = signal<{ key: string; n: number } | undefined>(undefined);
  readonly #env: Environment;
  readonly #link: Link;
  readonly #notifications = new Map<string, Notification>();
  readonly #followed = new Map<string, number>();
  #driver: Driver | undefined;
  #moduleSha = "";
  #tab: string | undefined;
  #restarts = 0;
  #openCount = 0;

  constructor(env: Environment) {
    this.#env = env;
    this.store = new Store(() => env.clock.wall());
    const { window, keys } = env;
    this.preferences = signal<Preferences>(keys.preferences);
    this.strings = computed<Strings>(() =>
      stringsFor(this.preferences.value.language, window.navigator.languages),
    );
    this.route = signal<Route>(parseRoute(window.location.hash));
    this.#link = new Link({
      url: socketUrl(env.base ?? `${window.location.protocol}//${window.location.host}`),
      client: { name: env.name ?? "page", version: env.version },
      token: () => keys.token,
      serve: (incoming) => {
        if (incoming.method === "user-questions/request" && this.#driver) {
          return this.#driver.serve(incoming);
        }
        return Promise.reject(unknownMethod(incoming.method));
      },
      notice: (method, params) => this.#driver?.send({ type: "notify", method, params }),
      onState: (state, detail) => this.#linkChanged(state, detail.retryInMs),
      onOnline: (welcome) => {
        this.welcome.value = welcome;
        this.#up(welcome);
      },
      onOffline: () => this.#driver?.down(),
      ...(env.openSocket ? { open: env.openSocket } : {}),
    });
  }

  async start(): Promise<void> {
    this.#listen();
    await this.#startModule();
    if (this.#env.keys.token !== undefined && !this.fatal.value) this.#link.start();
  }

  /** Lets go of the connection and the module: what it showed is taken from the page. */
  stop(): void {
    this.#link.stop();
    this.#driver?.stop();
    this.#driver = undefined;
  }

  // ── what a person does ────────────────────────────────────────────────────────────────────

  act(key: string, act: Act): void {
    this.#driver?.send({ type: "act", key, ...act });
  }

  fold(sessionId: string, key: string, open: boolean): void {
    this.#driver?.send({ type: "fold", sessionId, key, open });
  }

  /** Follows while anything on show needs it. */
  follow(sessionId: string): () => void {
    const uses = this.#followed.get(sessionId) ?? 0;
    this.#followed.set(sessionId, uses + 1);
    if (uses === 0) this.#driver?.send({ type: "follow", sessionId });
    return () => {
      const left = (this.#followed.get(sessionId) ?? 1) - 1;
      if (left > 0) {
        this.#followed.set(sessionId, left);
        return;
      }
      this.#followed.delete(sessionId);
      this.#driver?.send({ type: "unfollow", sessionId });
    };
  }

  /** A call that the page makes for itself: the session's administration. */
  async call(method: string, params: unknown): Promise<unknown> {
    if (underWay(this.#link.state)) await this.#attempted();
    const peer = this.#link.peer;
    if (!peer) throw new Error(this.strings.value.offline);
    return peer.call(method, params);
  }

  /** Resolves when the attempt to connect that is under way, or about to be, has come to an end. */
  #attempted(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.link.subscribe(({ state }) => {
        if (underWay(state)) return;
        resolve();
        queueMicrotask(() => stop());
      });
    });
  }

  /** `messageId` names this press: sent again after a lost answer, it arrives once. */
  async sendMessage(sessionId: string, text: string, messageId: string): Promise<void> {
    await this.call("session/send", { sessionId, text, messageId });
  }

  /** What was being written where; it outlives the place, and a reload. */
  words(place: string): string {
    return this.#env.keys.words(place);
  }

  keepWords(place: string, words: string): void {
    this.#env.keys.keepWords(place, words);
  }

  /** A session starts with what should be done; the host names it after that. */
  async createSession(text: string): Promise<string> {
    return sessionIdOf(await this.call("session/create", { text }));
  }

  async forkSession(sessionId: string, title: string): Promise<string> {
    return sessionIdOf(
      await this.call("session/fork", { sessionId, title: title.slice(0, titleCharsMax) }),
    );
  }

  /** A random id. */
  draw(): string {
    return this.#env.draw();
  }

  go(route: Route): void {
    const hash = formatRoute(route);
    if (this.#env.window.location.hash === hash) this.route.value = route;
    else this.#env.window.location.hash = hash;
  }

  /** A person opens this card: it comes into view, and may take focus. */
  openCard(key: string): void {
    this.act(key, { act: "open" });
    this.#reveal(key);
  }

  prefer(change: Partial<Preferences>): void {
    const next = { ...this.preferences.value, ...change };
    this.preferences.value = next;
    this.#env.keys.preferences = next;
    this.#driver?.send({ type: "settings", ...moduleSettings(next) });
  }

  async signInWith(code: string): Promise<void> {
    this.signIn.value = "busy";
    const outcome = await exchange(
      code,
      deviceLabel(this.#env.window.navigator.userAgent),
      (path, init) => this.#env.window.fetch(`${this.#env.base ?? ""}${path}`, init),
    );
    if ("refused" in outcome) {
      this.signIn.value = outcome.refused;
      return;
    }
    this.signIn.value = "none";
    this.#env.keys.token = outcome.token;
    this.#link.start();
  }

  signOut(): void {
    const token = this.#env.keys.token;
    this.#env.keys.token = undefined;
    if (token !== undefined) revoke(token, this.#env.window, this.#env.base);
    this.#link.stop("signedOut");
  }

  get token(): string | undefined {
    return this.#env.keys.token;
  }

  get signedIn(): boolean {
    return this.#env.keys.token !== undefined;
  }

  retry(): void {
    this.#link.start();
  }

  announce(text: string): void {
    // A region speaks when its text changes; the same sentence twice has to change in between.
    this.line.value = this.line.value === text ? `${text}\u00a0` : text;
  }

  // ── the module ────────────────────────────────────────────────────────────────────────────

  async #startModule(): Promise<void> {
    const { keys, draw, clock, window } = this.#env;
    let made: Awaited<ReturnType<Environment["machine"]>>;
    try {
      made = await this.#env.machine();
    } catch (error) {
      this.fatal.value = error instanceof Error ? error.message : String(error);
      return;
    }
    this.#moduleSha = made.sha256;
    this.#tab ??= await ownTab(keys, draw, window.navigator.locks);
    const driver = new Driver({
      machine: made.machine,
      clock,
      items: keys,
      peer: () => this.#link.peer,
      post: (method, params, signal) => {
        const token = keys.token;
        if (token === undefined) return Promise.reject(new Error("not signed in"));
        return post(method, params, { url: `${this.#env.base ?? ""}/rpc`, token, signal });
      },
      onDirty: (names, soon) => this.store.dirty(names, soon),
      onShown: (effect) => this.#shown(effect),
      onDead: (error) => void this.#moduleDied(error),
    });
    this.#driver = driver;
    driver.send({
      type: "init",
      tab: this.#tab,
      nonce: draw(),
      stored: keys.moduleItems(),
      ...(keys.durable ? {} : { storage: "memory" as const }),
      settings: moduleSettings(this.preferences.value),
      visible: isVisible(window),
    });
    for (const sessionId of this.#followed.keys()) driver.send({ type: "follow", sessionId });
    this.store.attach(driver);
  }

  /** A stopped instance is thrown away; its drafts are in storage, its deliveries come again. */
  async #moduleDied(error: Error): Promise<void> {
    console.error(error);
    const wasOn = this.#link.state !== "idle" && this.#link.state !== "signedOut";
    this.#driver = undefined;
    this.#link.stop();
    if (++this.#restarts > moduleRestartsMax) {
      this.fatal.value = error.message;
      return;
    }
    await this.#startModule();
    if (wasOn && !this.fatal.value) this.#link.start();
  }

  #up(welcome: Welcome): void {
    this.#driver?.send({
      type: "up",
      clientId: welcome.clientId,
      scopes: welcome.scopes,
      protocol: welcome.protocol,
      sha256: welcome.moduleSha256,
      // Outside a secure context the browser computes no digest, and then the builds count as one.
      build: { sha256: this.#moduleSha || welcome.moduleSha256, reload: this.#env.reloads ?? true },
    });
  }

  #linkChanged(state: LinkState, retryInMs: number | undefined): void {
    this.link.value = retryInMs === undefined ? { state } : { state, retryInMs };
    if (state === "signedOut") {
      this.#env.keys.token = undefined;
      this.#driver?.send({ type: "stopped", code: 4401 });
    } else if (state === "mismatched") {
      this.#driver?.send({ type: "stopped", code: 4400 });
    }
  }

  #shown(effect: Shown): void {
    switch (effect.do) {
      case "announce":
        this.announce(sentence(effect, this.strings.value));
        return;
      case "reveal":
        this.#reveal(effect.key);
        return;
      case "notify":
        this.#notify(effect.key, effect.kind);
        return;
      case "unnotify":
        this.#notifications.get(effect.key)?.close();
        this.#notifications.delete(effect.key);
        return;
      case "reload":
        // Once for a build: a cache that keeps serving the old one must not make a loop.
        if (this.#env.keys.firstReloadFor(this.welcome.value?.moduleSha256 ?? "")) {
          this.#env.window.location.reload();
        }
        return;
    }
  }

  #reveal(key: string): void {
    const row = this.#row(key);
    const route = this.route.value;
    const here = route.at === "session" && row?.sessionId === route.id;
    if (!here) this.go({ at: "inbox", key });
    this.focusCard(key);
  }

  /** The card is where the person is already: it may take the focus. */
  focusCard(key: string): void {
    this.opened.value = { key, n: ++this.#openCount };
  }

  #row(key: string): Row | undefined {
    return this.store.cards.value.cards?.find((row) => row.key === key);
  }

  #notify(key: string, kind: "arrived" | "reminder"): void {
    const { window } = this.#env;
    const { notify, push, sound, quiet } = this.preferences.value;
    if (!notify || push || !("Notification" in window)) return;
    if (isQuiet(quiet, minuteOf(new Date(this.#env.clock.wall())))) return;
    if (window.Notification.permission !== "granted") return;
    const row = this.#row(key);
    if (!row) return;
    const s = this.strings.value;
    const text = row.text ?? "";
    try {
      const shown = new window.Notification(
        s.notifyTitle(agentName(row.agent) || s.someAgent, row.header ?? ""),
        { body: kind === "reminder" ? s.notifyReminder(text) : text, tag: key, silent: !sound },
      );
      shown.onclick = () => {
        window.focus();
        this.openCard(key);
        shown.close();
      };
      this.#notifications.set(key, shown);
    } catch {
      // Some browsers only notify from a service worker; then the page's own list has to do.
    }
  }

  // ── the browser ───────────────────────────────────────────────────────────────────────────

  #listen(): void {
    const { window } = this.#env;
    const { document } = window;
    const visibility = (): void => {
      this.#driver?.send({ type: "window", visible: isVisible(window) });
    };
    window.addEventListener("focus", visibility);
    window.addEventListener("blur", visibility);
    document.addEventListener("visibilitychange", () => {
      visibility();
      if (document.visibilityState === "visible") this.#link.wake();
    });
    window.addEventListener("pageshow", () => this.#link.wake());
    window.addEventListener("online", () => this.#link.wake());
    window.addEventListener("hashchange", () => {
      // A login link that is opened where the page is already open loads nothing anew.
      const code = takeCode(window.location, window.history);
      if (code !== undefined && !this.signedIn) void this.signInWith(code);
      this.route.value = parseRoute(window.location.hash);
    });
    window.addEventListener("storage", (event) => {
      if (event.key?.startsWith("mw/")) {
        this.#driver?.send({ type: "stored", key: event.key, value: event.newValue });
      }
    });
  }
}

/** A connection is being made, or is about to be: right after a start there was no attempt yet. */
function underWay(state: LinkState): boolean {
  return state === "connecting" || state === "idle";
}

function socketUrl(base: string): string {
  return `${base.replace(/^http/, "ws")}/rpc`;
}

function isVisible(window: Window): boolean {
  return window.document.visibilityState === "visible" && window.document.hasFocus();
}

function moduleSettings(preferences: Preferences): Settings {
  return {
    ...(preferences.carryOnMs > 0 ? { carryOnMs: preferences.carryOnMs } : {}),
    ...(preferences.notify ? { notify: true } : {}),
  };
}

function sessionIdOf(result: unknown): string {
  const id = isObject(result) ? result.sessionId : undefined;
  if (typeof id !== "string") throw new Error("the host named no session");
  return id;
}
