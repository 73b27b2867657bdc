// Twin of the inputs and effects in wasm/client/doc.go: what the page tells the module and what
// the module has the page do.

export type Input =
  | {
      type: "init";
      tab: string;
      nonce: string;
      stored: Record<string, string>;
      storage?: "memory";
      settings?: Settings;
      visible?: boolean;
    }
  | ({ type: "settings" } & Settings)
  | {
      type: "up";
      clientId: string;
      scopes: string[];
      protocol: number;
      sha256: string;
      build: { sha256: string; reload: boolean };
    }
  | { type: "down" }
  | { type: "stopped"; code: 4400 | 4401 }
  | { type: "request"; id: string; method: string; params: unknown }
  | { type: "cancel"; id: string }
  | { type: "notify"; method: string; params: unknown }
  | { type: "result"; id: string | number; result: unknown }
  | { type: "error"; id: string | number; error: CallError }
  | { type: "item"; id: string | number; value: unknown }
  | { type: "follow"; sessionId: string }
  | { type: "unfollow"; sessionId: string }
  | { type: "window"; visible: boolean }
  | { type: "stored"; key: string; value: string | null }
  | { type: "storage"; failed: boolean }
  | { type: "fold"; sessionId: string; key: string; open: boolean }
  | { type: "tick" }
  | ActInput;

export interface Settings {
  carryOnMs?: number;
  notify?: boolean;
}

export interface CallError {
  code?: number;
  message?: string;
  data?: unknown;
}

/** The code of a POST that the network refused. */
export const networkRefused = -32001;

export type ActInput = { type: "act"; key: string } & Act;

export type Act =
  | { act: "focus" | "blur" | "wait" | "hide" | "open" | "close" | "approve" | "changes" }
  | { act: "cancelReply" | "dismiss" | "seen" | "delegate" }
  | { act: "select"; q: number; o: number; pointer?: boolean }
  | { act: "custom"; q: number; text: string }
  | { act: "skip"; q: number; on: boolean; pointer?: boolean }
  | { act: "page"; to: number; pointer?: boolean }
  | { act: "submit"; pointer?: boolean };

export type Effect =
  | { do: "call"; id: string | number; method: string; params: unknown; post?: boolean }
  | { do: "stream"; id: string | number; method: string; params: unknown }
  | { do: "abort"; id: string | number }
  | { do: "respond"; id: string; result?: unknown; error?: CallError }
  | { do: "store"; key: string; value: string }
  | { do: "remove"; key: string }
  | Announcement
  | { do: "notify"; key: string; kind: "arrived" | "reminder" }
  | { do: "unnotify"; key: string }
  | { do: "reveal"; key: string }
  | { do: "reload" };

export interface Announcement {
  do: "announce";
  code:
    | "arrived"
    | "left"
    | "carried-on"
    | "answered-elsewhere"
    | "withdrawn"
    | "sent"
    | "queued"
    | "refused"
    | "submit-again"
    | "offline"
    | "online";
  key?: string;
  n?: number;
}

export interface Step {
  effects?: Effect[];
  dirty?: string[];
  next?: number;
}

export interface ModuleErrorBody {
  code: "BAD_INPUT" | "TOO_LARGE" | "TRAP" | string;
  message: string;
}
