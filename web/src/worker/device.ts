// What the worker has to know of this device. It has no local storage, so the page leaves it in a
// cache of its own, and takes it away when it signs out.

export interface Device {
  token?: string;
  language: "en" | "zh";
  sound: boolean;
  /** "22:00-07:00" in local time; "" is never. */
  quiet: string;
}

export const deviceCache = "mw-device";
const devicePath = "/device.json";

export async function writeDevice(caches: CacheStorage, device: Device): Promise<void> {
  const cache = await caches.open(deviceCache);
  await cache.put(devicePath, new Response(JSON.stringify(device)));
}

export async function readDevice(caches: CacheStorage): Promise<Device> {
  const found = await (await caches.open(deviceCache)).match(devicePath);
  const kept: Partial<Device> = found ? await found.json() : {};
  return {
    ...(typeof kept.token === "string" ? { token: kept.token } : {}),
    language: kept.language === "zh" ? "zh" : "en",
    sound: kept.sound !== false,
    quiet: typeof kept.quiet === "string" ? kept.quiet : "",
  };
}

/** Whether `at`, in minutes of the local day, lies in quiet hours. They may span midnight. */
export function isQuiet(hours: string, at: number): boolean {
  const match = /^(\d\d):(\d\d)-(\d\d):(\d\d)$/.exec(hours);
  if (!match) return false;
  const [, h1, m1, h2, m2] = match.map(Number) as [number, number, number, number, number];
  const from = h1 * 60 + m1;
  const to = h2 * 60 + m2;
  return from <= to ? from <= at && at < to : from <= at || at < to;
}

export function minuteOf(date: Date): number {
  return date.getHours() * 60 + date.getMinutes();
}
