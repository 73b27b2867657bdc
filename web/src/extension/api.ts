// The part of the browsers' extension interface that is used here, as Chrome and Firefox both have
// it. Firefox offers it under the same name.

interface Happening<F extends (...args: never[]) => unknown> {
  addListener(listener: F): void;
}

export interface StorageChange {
  newValue?: unknown;
}

export interface NoticeOptions {
  type: "basic";
  iconUrl: string;
  title: string;
  message: string;
  buttons?: { title: string }[];
}

export interface Api {
  runtime: {
    id: string;
    getURL(path: string): string;
    openOptionsPage(): Promise<void>;
    onInstalled: Happening<() => void>;
    onStartup: Happening<() => void>;
  };
  storage: {
    local: {
      get(key: null): Promise<Record<string, unknown>>;
      set(items: Record<string, string>): Promise<void>;
      remove(key: string): Promise<void>;
    };
    onChanged: Happening<(changes: Record<string, StorageChange>, area: string) => void>;
  };
  alarms: {
    create(name: string, info: { periodInMinutes: number }): Promise<void>;
    onAlarm: Happening<(alarm: { name: string }) => void>;
  };
  action: {
    setBadgeText(details: { text: string }): Promise<void>;
    setBadgeBackgroundColor(details: { color: string }): Promise<void>;
    setTitle(details: { title: string }): Promise<void>;
  };
  notifications: {
    create(id: string, options: NoticeOptions): Promise<string>;
    clear(id: string): Promise<boolean>;
    onClicked: Happening<(id: string) => void>;
    /** Firefox has none: its notifications carry no buttons. */
    onButtonClicked?: Happening<(id: string, button: number) => void>;
  };
  windows: {
    create(details: {
      url: string;
      type: "popup";
      width: number;
      height: number;
    }): Promise<unknown>;
  };
}

declare const chrome: Api;

export function api(): Api {
  return chrome;
}
