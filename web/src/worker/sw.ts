// The service worker: a shell that opens offline, and pushes. It holds no state between events.

import { sendAnswer } from "./answer.ts";
import { minuteOf, readDevice } from "./device.ts";
import { noticeOf, type Payload, payloadOf, words } from "./notice.ts";

/** The part of a worker's scope that is used here; the DOM's types have none. */
interface Scope {
  location: Location;
  registration: ServiceWorkerRegistration;
  caches: CacheStorage;
  clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<WindowClient[]>;
    openWindow(url: string): Promise<unknown>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: string, listener: (event: WorkerEvent) => void): void;
}

interface WindowClient {
  url: string;
  focused: boolean;
  visibilityState: string;
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

interface WorkerEvent {
  waitUntil(work: Promise<unknown>): void;
  respondWith(response: Promise<Response>): void;
  request: Request;
  data: { json(): unknown } | null;
  notification: Notification;
  action: string;
}

const scope = self as unknown as Scope;
const shellCache = "mw-shell-1";
const shellMax = 60;
const shellFiles = ["/", "/icon.svg", "/icon-192.png", "/manifest.webmanifest", "/client.wasm"];

scope.addEventListener("install", (event) => {
  event.waitUntil(fill().then(() => scope.skipWaiting()));
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(
    scope.caches
      .keys()
      .then((names) =>
        Promise.all(
          names
            .filter((name) => name.startsWith("mw-shell-") && name !== shellCache)
            .map((name) => scope.caches.delete(name)),
        ),
      )
      .then(() => scope.clients.claim()),
  );
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== scope.location.origin) return;
  if (url.pathname.startsWith("/assets/")) event.respondWith(cacheFirst(request));
  else if (shellFiles.includes(url.pathname)) event.respondWith(networkFirst(request, url));
});

scope.addEventListener("push", (event) => {
  let doc: unknown;
  try {
    doc = event.data?.json();
  } catch {
    return;
  }
  const payload = payloadOf(doc);
  if (payload) event.waitUntil(show(payload));
});

scope.addEventListener("notificationclick", (event) => {
  const payload = event.notification.data as Payload;
  event.notification.close();
  event.waitUntil(event.action === "send" ? answer(payload) : open(payload));
});

// ── the shell ───────────────────────────────────────────────────────────────────────────────────

/** Fetches the page and all that it may ask for, the parts that come later too. */
async function fill(): Promise<void> {
  const cache = await scope.caches.open(shellCache);
  await cache.addAll(shellFiles);
  const seen = new Set<string>();
  const index = await (await cache.match("/", { ignoreVary: true }))?.text();
  const wanted = namesIn(index ?? "");
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (seen.has(name) || seen.size >= shellMax) continue;
    seen.add(name);
    const response = await fetch(`/assets/${name}`);
    if (!response.ok) continue;
    await cache.put(`/assets/${name}`, response.clone());
    if (name.endsWith(".js")) wanted.push(...namesIn(await response.text()));
  }
}

/** Files of the build carry their hash in the name. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/["'`](?:\.\/|\/?assets\/)([\w.-]+\.(?:js|css))["'`]/g)].map(
    (match) => match[1] as string,
  );
}

/** What is kept was asked for by the worker, with other headers than the page's. */
function kept(cache: Cache, url: URL): Promise<Response | undefined> {
  return cache.match(url.pathname, { ignoreVary: true });
}

async function cacheFirst(request: Request): Promise<Response> {
  const cache = await scope.caches.open(shellCache);
  const found = await kept(cache, new URL(request.url));
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) {
    await cache.put(request, response.clone());
    await prune(cache);
  }
  return response;
}

/** The host has the last word on the page and the module; the cache speaks when it is away. */
async function networkFirst(request: Request, url: URL): Promise<Response> {
  const cache = await scope.caches.open(shellCache);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(url.pathname, response.clone());
    return response;
  } catch (error) {
    const found = await kept(cache, url);
    if (found) return found;
    throw error;
  }
}

/** Builds come and go: the oldest files leave. */
async function prune(cache: Cache): Promise<void> {
  const assets = (await cache.keys()).filter((r) => new URL(r.url).pathname.startsWith("/assets/"));
  await Promise.all(assets.slice(0, -shellMax).map((r) => cache.delete(r)));
}

// ── pushes ──────────────────────────────────────────────────────────────────────────────────────

async function windows(): Promise<WindowClient[]> {
  return scope.clients.matchAll({ type: "window", includeUncontrolled: true });
}

async function show(p: Payload): Promise<void> {
  const shown = await scope.registration.getNotifications({ tag: p.key });
  const inView = (await windows()).some((c) => c.focused && c.visibilityState === "visible");
  if (inView && p.kind !== "test") {
    // The page says it itself.
    for (const notification of shown) notification.close();
    return;
  }
  // Nothing on show, nothing to take back. What is on show is replaced by a silent line, as a push
  // that shows nothing costs the permission in some browsers; the page takes it away.
  if (p.kind === "settled" && shown.length === 0) return;
  const device = await readDevice(scope.caches);
  const { title, options } = noticeOf(p, device, minuteOf(new Date()));
  await scope.registration.showNotification(title, options);
}

async function open(p: Payload): Promise<void> {
  const page = (await windows())[0];
  if (!page) {
    await scope.clients.openWindow(
      p.kind === "test" ? "/" : `/#/card/${encodeURIComponent(p.key)}`,
    );
    return;
  }
  await page.focus();
  if (p.kind !== "test") page.postMessage({ open: p.key });
}

async function answer(p: Payload): Promise<void> {
  const device = await readDevice(scope.caches);
  const w = words[device.language];
  const sent =
    device.token !== undefined &&
    (await sendAnswer(p, device.token, crypto.randomUUID(), fetch.bind(self)));
  const { title } = noticeOf(p, device, 0);
  // Settled, so that the page takes it away once it is seen; a failure stays until it is opened.
  const data: Payload = { ...p, kind: sent ? "settled" : "arrived" };
  await scope.registration.showNotification(title, {
    body: sent ? w.sent(p.send ?? "") : w.notSent,
    tag: p.key,
    silent: true,
    icon: "/icon-192.png",
    data,
  });
}
