// Pairing: a host's address and a single-use login code buy a token for this browser.

import { codeIn, deviceLabel } from "../app/signin.ts";

/** Where a host listens unless it was told otherwise. */
export const usualHost = "http://127.0.0.1:7331";

export const hostKey = "meanwhile/host";
export const noticesKey = "meanwhile/notices";

/** The asks that were announced, over the worker's deaths. */
export const announcedKey = "meanwhile/announced";

export function hostOf(text: string): string | undefined {
  const trimmed = text.trim();
  try {
    const url = new URL(/^https?:\/\//.test(trimmed) ? trimmed : `http://${trimmed}`);
    return url.hostname === "" ? undefined : url.origin;
  } catch {
    return undefined;
  }
}

/** A pasted login link holds both; a bare code goes to the host in its field. */
export function readPairing(
  host: string,
  pasted: string,
): { host: string; code: string } | "host" | "code" {
  const code = codeIn(pasted);
  if (code === undefined) return "code";
  const origin = hostOf(/^https?:\/\//.test(pasted.trim()) ? pasted : host);
  return origin === undefined ? "host" : { host: origin, code };
}

export type Paired =
  | { token: string }
  | { refused: "unreachable" | "bad-code" | "too-many" | "odd" };

export async function pair(
  host: string,
  code: string,
  userAgent: string,
  send: typeof fetch = fetch,
): Promise<Paired> {
  let response: Response;
  try {
    response = await send(`${host}/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code, label: `${deviceLabel(userAgent)}, extension` }),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch {
    // A host that is down and one that does not list this origin look the same from here.
    return { refused: "unreachable" };
  }
  if (response.status === 401) return { refused: "bad-code" };
  if (response.status === 403) return { refused: "unreachable" };
  if (response.status === 429) return { refused: "too-many" };
  if (!response.ok) return { refused: "odd" };
  const body: unknown = await response.json().catch(() => undefined);
  const token = typeof body === "object" && body !== null && "token" in body ? body.token : "";
  return typeof token === "string" && token !== "" ? { token } : { refused: "odd" };
}
