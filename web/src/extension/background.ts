// The worker's shell: browser events in, badge and notifications out. The browser ends it when it
// likes and starts it again for any event, so everything registers at once and at the top.

import type { Row } from "../protocol/view.ts";
import { Keys } from "../store/keys.ts";
import { stringsFor } from "../ui/strings/index.ts";
import { visible } from "../ui/text.ts";
import { api } from "./api.ts";
import { draw, loadBundled } from "./bundled.ts";
import { Mirror } from "./mirror.ts";
import { noticeOf } from "./notice.ts";
import { announcedKey, hostKey, noticesKey } from "./pairing.ts";
import { type Badge, Watcher } from "./watcher.ts";
import { wordsFor } from "./words.ts";

const alarm = "wake";
/** The shortest that the browsers allow. */
const alarmMinutes = 0.5;
const accent = "#1d6b66";
const grey = "#6b6f6d";

const browser = api();
const mirror = Mirror.open(browser);
let watcher: Watcher | undefined;
let watched = "";

async function wake(): Promise<Watcher | undefined> {
  const stored = await mirror;
  const keys = keysOf(stored);
  const base = stored.getItem(hostKey);
  const token = keys.token;
  const pairing = `${base} ${token}`;
  if (watched !== pairing) {
    watcher?.stop();
    watcher = undefined;
    watched = pairing;
  }
  if (!base || token === undefined) {
    badge({ needs: 0, state: "signedOut" });
    return undefined;
  }
  watcher ??= makeWatcher(stored, base, token);
  await watcher.start();
  return watcher;
}

function makeWatcher(stored: Mirror, base: string, token: string): Watcher {
  const said = () => stringsFor(keysOf(stored).preferences.language, navigator.languages);
  const icon = browser.runtime.getURL("icons/128.png");
  return new Watcher({
    base,
    token,
    version: __VERSION__,
    clock: { wall: () => Date.now(), mono: () => Math.floor(performance.now()) },
    draw,
    machine: loadBundled,
    announced: {
      read: () => stored.getItem(announcedKey),
      write: (text) => stored.setItem(announcedKey, text),
    },
    notices: () => stored.getItem(noticesKey) !== "off",
    badge,
    describe: (card) =>
      noticeOf(card, said(), wordsFor(said()), {
        icon,
        buttons: browser.notifications.onButtonClicked !== undefined,
      }),
    show: (key, notice) => void browser.notifications.create(key, notice).catch(report),
    clear: (key) => void browser.notifications.clear(key).catch(report),
    notSent: (key, row: Row | undefined, label) =>
      void browser.notifications
        .create(key, {
          type: "basic",
          iconUrl: icon,
          title: visible(row?.text ?? "Meanwhile"),
          message: wordsFor(said()).notSent(visible(label)),
        })
        .catch(report),
    refused: () => {
      keysOf(stored).token = undefined;
      void wake();
    },
  });
}

function keysOf(stored: Mirror): Keys {
  return new Keys(
    () => stored,
    () => stored,
  );
}

function badge({ needs, state }: Badge): void {
  const w = wordsFor(stringsFor("auto", navigator.languages));
  const unpaired = state === "signedOut" || state === "mismatched";
  const offline = state !== "online";
  const title = unpaired
    ? w.unpaired
    : needs > 0
      ? w.needYou(needs)
      : state === "waiting"
        ? w.offline
        : w.quiet;
  const text = unpaired ? "!" : needs > 0 ? String(needs) : "";
  void browser.action.setBadgeText({ text }).catch(report);
  void browser.action.setBadgeBackgroundColor({ color: offline ? grey : accent }).catch(report);
  void browser.action.setTitle({ title }).catch(report);
}

function openCard(key: string): void {
  void browser.notifications.clear(key).catch(report);
  const url = browser.runtime.getURL(`view.html#/card/${encodeURIComponent(key)}`);
  void browser.windows.create({ url, type: "popup", width: 460, height: 720 }).catch(report);
}

function report(error: unknown): void {
  console.error(error);
}

browser.runtime.onInstalled.addListener(() => void wake().catch(report));
browser.runtime.onStartup.addListener(() => void wake().catch(report));
browser.alarms.onAlarm.addListener(() => void wake().catch(report));
browser.notifications.onClicked.addListener(openCard);
browser.notifications.onButtonClicked?.addListener((key, button) => {
  if (button === 0) void wake().then((running) => running?.press(key), report);
  else openCard(key);
});
void browser.alarms.create(alarm, { periodInMinutes: alarmMinutes }).catch(report);
void mirror.then((stored) =>
  stored.onChanged((key) => {
    if (key === hostKey || key === "meanwhile/token") void wake().catch(report);
  }),
);
void wake().catch(report);
