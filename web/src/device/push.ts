// Turns Web Push on and off for this browser.

import { isObject } from "../rpc/frame.ts";

export type Call = (method: string, params: unknown) => Promise<unknown>;

export type PushState = "on" | "unsupported" | { failed: string };

/** Web Push takes bytes where the wire has base64url. */
export function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

function same(a: ArrayBuffer | null, b: Uint8Array): boolean {
  if (!a) return false;
  const bytes = new Uint8Array(a);
  return bytes.length === b.length && bytes.every((byte, i) => byte === b[i]);
}

async function registrationOf(window: Window): Promise<ServiceWorkerRegistration | undefined> {
  if (!("PushManager" in window)) return undefined;
  return window.navigator.serviceWorker?.ready;
}

/** Subscribes, after permission was given. A subscription to another host's key is replaced. */
export async function turnOn(window: Window, call: Call): Promise<PushState> {
  const registration = await registrationOf(window);
  if (!registration) return "unsupported";
  try {
    const result = await call("push/key", {});
    const key =
      isObject(result) && typeof result.key === "string" ? bytesOf(result.key) : undefined;
    if (!key) return "unsupported";
    let subscription = await registration.pushManager.getSubscription();
    if (subscription && !same(subscription.options.applicationServerKey, key)) {
      await subscription.unsubscribe();
      subscription = null;
    }
    subscription ??= await registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: key,
    });
    const { endpoint, keys } = subscription.toJSON();
    await call("push/subscribe", { endpoint, keys: { p256dh: keys?.p256dh, auth: keys?.auth } });
    return "on";
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

export async function turnOff(window: Window, call: Call): Promise<void> {
  const registration = await registrationOf(window);
  const subscription = await registration?.pushManager.getSubscription();
  if (!subscription) return;
  await call("push/unsubscribe", { endpoint: subscription.endpoint }).catch(() => {});
  await subscription.unsubscribe().catch(() => {});
}
