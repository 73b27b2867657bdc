// Where the page is, kept in the address's fragment so that back, forward and reload work.

export type Route =
  | { at: "inbox"; key?: string }
  | { at: "sessions" }
  | { at: "session"; id: string }
  | { at: "settings" };

export function parseRoute(hash: string): Route {
  const [place, id] = hash.replace(/^#\/?/, "").split("/");
  switch (place) {
    case "card":
      return id ? { at: "inbox", key: decode(id) } : { at: "inbox" };
    case "session":
      return id ? { at: "session", id: decode(id) } : { at: "sessions" };
    case "sessions":
      return { at: "sessions" };
    case "settings":
      return { at: "settings" };
    default:
      return { at: "inbox" };
  }
}

export function formatRoute(route: Route): string {
  switch (route.at) {
    case "inbox":
      return route.key === undefined ? "#/" : `#/card/${encodeURIComponent(route.key)}`;
    case "session":
      return `#/session/${encodeURIComponent(route.id)}`;
    case "sessions":
      return "#/sessions";
    case "settings":
      return "#/settings";
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
