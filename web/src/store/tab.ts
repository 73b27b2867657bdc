// The id of this tab: kept over a reload, and never that of another open tab. A browser copies
// sessionStorage when a tab is duplicated, so the id in it is claimed by a lock for as long as the
// page lives; whoever finds it taken draws another.

import type { Keys } from "./keys.ts";

/** A reloaded page waits this long for the lock that its former self is letting go of. */
export const claimMaxMs = 300;

export async function ownTab(
  keys: Keys,
  draw: () => string,
  locks: LockManager | undefined,
): Promise<string> {
  const kept = keys.tab(draw);
  // Without locks (no secure context, an old browser) a duplicated tab shares its drafts.
  if (!locks || (await claim(locks, kept))) return kept;
  const fresh = keys.newTab(draw);
  await claim(locks, fresh);
  return fresh;
}

function claim(locks: LockManager, tab: string): Promise<boolean> {
  return new Promise((resolve) => {
    locks
      .request(`meanwhile/tab/${tab}`, { signal: AbortSignal.timeout(claimMaxMs) }, () => {
        resolve(true);
        return new Promise<never>(() => {}); // held until the page is gone
      })
      .catch(() => resolve(false));
  });
}
