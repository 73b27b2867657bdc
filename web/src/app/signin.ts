// Signing in: a single-use code from the login link buys a token. The code leaves the address at
// once, before anything else runs, and the token never enters one.

/** The code of a login link, out of a whole link or by itself; undefined when there is none. */
export function codeIn(text: string): string | undefined {
  const match = /(?:^|[#&?])code=([A-Za-z0-9._~-]+)/.exec(text.trim());
  if (match) return match[1];
  return /^[A-Za-z0-9._~-]{6,200}$/.test(text.trim()) ? text.trim() : undefined;
}

/** Takes the code out of the address and leaves the address without it. */
export function takeCode(location: Location, history: History): string | undefined {
  if (!/[#&]code=/.test(location.hash)) return undefined;
  const code = codeIn(location.hash);
  history.replaceState(null, "", location.pathname);
  return code;
}

export type Exchanged = { token: string } | { refused: "bad" | "network" };

/** What other devices call this one: "Answered by Firefox on Android". */
export function deviceLabel(userAgent: string): string {
  const browser = /Edg\//.test(userAgent)
    ? "Edge"
    : /Firefox\//.test(userAgent)
      ? "Firefox"
      : /Chrome\//.test(userAgent)
        ? "Chrome"
        : /Safari\//.test(userAgent)
          ? "Safari"
          : "Browser";
  const system = /iPhone|iPad/.test(userAgent)
    ? "iOS"
    : /Android/.test(userAgent)
      ? "Android"
      : /Windows/.test(userAgent)
        ? "Windows"
        : /Mac OS X/.test(userAgent)
          ? "macOS"
          : /Linux/.test(userAgent)
            ? "Linux"
            : "";
  return system === "" ? browser : `${browser} on ${system}`;
}

export async function exchange(
  code: string,
  label: string,
  send: typeof fetch = fetch,
): Promise<Exchanged> {
  let response: Response;
  try {
    response = await send("/auth/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code, label }),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch {
    return { refused: "network" };
  }
  // Too many attempts: the code was not looked at, and works in a moment.
  if (response.status >= 500 || response.status === 429) return { refused: "network" };
  if (!response.ok) return { refused: "bad" };
  try {
    const body: unknown = await response.json();
    const token = typeof body === "object" && body !== null && "token" in body ? body.token : "";
    if (typeof token === "string" && token !== "") return { token };
  } catch {
    // An answer that is not JSON is no answer of this host.
  }
  return { refused: "bad" };
}

/** Tells the host to forget the token. This device has forgotten it already, whatever comes back. */
export function revoke(token: string, window: Window, base = ""): void {
  window
    .fetch(`${base}/auth/logout`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      credentials: "omit",
      keepalive: true,
    })
    .catch(() => {});
}
