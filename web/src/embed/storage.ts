// One host's part of a storage that others use too. An embedding page may show two hosts, and its
// own things lie beside ours: the token of one host must never go to the other.

export class PartOfStorage implements Storage {
  readonly #all: Storage;
  readonly #prefix: string;

  constructor(all: Storage, prefix: string) {
    this.#all = all;
    this.#prefix = prefix;
  }

  get length(): number {
    return this.#keys().length;
  }

  key(index: number): string | null {
    return this.#keys()[index] ?? null;
  }

  getItem(key: string): string | null {
    return this.#all.getItem(this.#prefix + key);
  }

  setItem(key: string, value: string): void {
    this.#all.setItem(this.#prefix + key, value);
  }

  removeItem(key: string): void {
    this.#all.removeItem(this.#prefix + key);
  }

  clear(): void {
    for (const key of this.#keys()) this.removeItem(key);
  }

  #keys(): string[] {
    const keys: string[] = [];
    for (let i = 0; i < this.#all.length; i++) {
      const key = this.#all.key(i);
      if (key?.startsWith(this.#prefix)) keys.push(key.slice(this.#prefix.length));
    }
    return keys;
  }
}
