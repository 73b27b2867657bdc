// Sentences about what happened, for the status line and for a call that failed.

import type { Announcement } from "../protocol/step.ts";
import { RemoteError } from "../rpc/frame.ts";
import type { Strings } from "../ui/strings/index.ts";

export function sentence(said: Announcement, s: Strings): string {
  switch (said.code) {
    case "arrived":
      return s.sayArrived(said.n ?? 1);
    case "left":
      return s.sayLeft(said.n ?? 0);
    case "carried-on":
      return s.sayCarriedOn;
    case "answered-elsewhere":
      return s.sayElsewhere;
    case "withdrawn":
      return s.sayWithdrawn;
    case "sent":
      return s.saySent;
    case "queued":
      return s.sayQueued;
    case "refused":
      return s.sayRefused;
    case "submit-again":
      return s.saySubmitAgain;
    case "offline":
      return s.sayOffline;
    case "online":
      return s.sayOnline;
  }
}

/** What to tell a person about a call that failed. */
export function failureText(error: unknown, s: Strings): string {
  if (error instanceof RemoteError && error.code === "MISSING_SCOPE") return s.notAllowed;
  return s.actionFailed(error instanceof Error ? error.message : String(error));
}
