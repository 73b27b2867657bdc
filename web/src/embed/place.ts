// What the app sees of the window when it lives inside somebody else's page: its own address, its
// own part of the storage events, and nothing that would move or reload that page.

export interface PlaceOptions {
  base: string;
  storagePrefix: string;
  /** Ends every listener. */
  signal: AbortSignal;
}

export function place(window: Window & typeof globalThis, options: PlaceOptions) {
  const { base, storagePrefix, signal } = options;
  const { protocol, host } = new URL(base);
  const moved = new EventTarget();
  let hash = "#/";
  const location = {
    protocol,
    host,
    origin: base,
    reload: () => {},
    get hash() {
      return hash;
    },
    set hash(next: string) {
      if (hash === next) return;
      hash = next;
      moved.dispatchEvent(new Event("hashchange"));
    },
  };
  const addEventListener = (type: string, listener: (event: Event) => void): void => {
    if (type === "hashchange") {
      moved.addEventListener(type, listener, { signal });
    } else if (type === "storage") {
      const inner = (event: StorageEvent): void => {
        if (!event.key?.startsWith(storagePrefix)) return;
        const { newValue } = event;
        listener(
          new StorageEvent("storage", { key: event.key.slice(storagePrefix.length), newValue }),
        );
      };
      window.addEventListener("storage", inner, { signal });
    } else {
      window.addEventListener(type, listener, { signal });
    }
  };
  const document = over(window.document, {
    addEventListener: (type: string, listener: (event: Event) => void) =>
      window.document.addEventListener(type, listener, { signal }),
  });
  return over(window, {
    location,
    document,
    addEventListener,
    fetch: window.fetch.bind(window),
    // The embedding page's notifications are its own business.
    Notification: undefined,
  }) as unknown as Window & typeof globalThis;
}

/** The object, with some of its members replaced. Methods keep their owner. */
function over<T extends object>(object: T, members: Record<string, unknown>): T {
  return new Proxy(object, {
    has: (target, name) =>
      name in members ? members[String(name)] !== undefined : Reflect.has(target, name),
    get: (target, name) => {
      if (typeof name === "string" && name in members) return members[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" && value.prototype === undefined
        ? value.bind(target)
        : value;
    },
  });
}
