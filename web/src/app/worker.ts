// The page's side of the service worker: it starts it, opens what a notification was clicked for,
// and takes away what has nothing left to say.

import { effect } from "@preact/signals";
import type { App } from "./app.ts";

export function startWorker(app: App, window: Window): void {
  const workers = window.navigator.serviceWorker;
  // Absent outside a secure context. A browser that forbids it still shows the page.
  if (!workers) return;
  workers.register("/sw.js").catch(() => {});
  workers.addEventListener("message", (event: MessageEvent<{ open?: unknown }>) => {
    if (typeof event.data?.open === "string") app.openCard(event.data.open);
  });
  const tidy = async (): Promise<void> => {
    if (window.document.visibilityState !== "visible") return;
    const registration = await workers.getRegistration();
    for (const shown of (await registration?.getNotifications()) ?? []) {
      if (shown.data?.kind === "settled") shown.close();
    }
  };
  window.document.addEventListener("visibilitychange", () => void tidy());
  void tidy();
  effect(() => {
    if (app.link.value.state === "signedOut") void window.caches.delete("mw-device");
  });
}
