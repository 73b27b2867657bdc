// The extension's storage as the page's code knows storage: read at once from a copy in memory,
// written through to the browser. A service worker has no localStorage, and popup, side panel and
// worker share this one.
//
// Owns the copy. Writes go out in order; a write that the browser refuses is reported once.

import type { Api } from "./api.ts";

export class Mirror implements Storage {
  readonly #items: Map<string, string>;
  readonly #api: Api;
  readonly #changed = new Set<(key: string, value: string | null) => void>();

  private constructor(api: Api, items: Map<string, string>) {
    this.#api = api;
    this.#items = items;
  }

  static async open(api: Api): Promise<Mirror> {
    const items = new Map<string, string>();
    const mirror = new Mirror(api, items);
    let read = false;
    api.storage.onChanged.addListener((changes, area) => {
      if (area !== "local" || !read) return;
      for (const [key, { newValue }] of Object.entries(changes)) mirror.#heard(key, newValue);
    });
    for (const [key, value] of Object.entries(await api.storage.local.get(null))) {
      if (typeof value === "string") items.set(key, value);
    }
    read = true;
    return mirror;
  }

  /** Another place of the extension changed something. */
  onChanged(listener: (key: string, value: string | null) => void): void {
    this.#changed.add(listener);
  }

  get length(): number {
    return this.#items.size;
  }

  key(index: number): string | null {
    return [...this.#items.keys()][index] ?? null;
  }

  getItem(key: string): string | null {
    return this.#items.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    if (this.#items.get(key) === value) return;
    this.#items.set(key, value);
    this.#api.storage.local.set({ [key]: value }).catch((error) => console.error(error));
  }

  removeItem(key: string): void {
    if (!this.#items.delete(key)) return;
    this.#api.storage.local.remove(key).catch((error) => console.error(error));
  }

  clear(): void {
    for (const key of [...this.#items.keys()]) this.removeItem(key);
  }

  #heard(key: string, newValue: unknown): void {
    const value = typeof newValue === "string" ? newValue : null;
    // The echo of what this place wrote itself.
    if ((this.#items.get(key) ?? null) === value) return;
    if (value === null) this.#items.delete(key);
    else this.#items.set(key, value);
    for (const listener of this.#changed) listener(key, value);
  }
}
