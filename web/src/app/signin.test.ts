import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute, type Route } from "./route.ts";
import { codeIn, deviceLabel, exchange, takeCode } from "./signin.ts";

describe("the code of a login link", () => {
  const cases = [
    { name: "a link", text: "http://127.0.0.1:7331/#code=ab-CD_12.x", want: "ab-CD_12.x" },
    { name: "a fragment", text: "#code=abc", want: "abc" },
    { name: "beside others", text: "#a=1&code=abc", want: "abc" },
    { name: "by itself", text: "  abcdef123  ", want: "abcdef123" },
    { name: "a sentence", text: "run meanwhile login", want: undefined },
    { name: "nothing", text: "", want: undefined },
    { name: "another member", text: "#barcode=abc", want: undefined },
  ];
  for (const { name, text, want } of cases) {
    it(`is read from ${name}`, () => expect(codeIn(text)).toBe(want));
  }

  it("leaves the address before it is used", () => {
    const replaced: unknown[] = [];
    const history = {
      replaceState: (...args: unknown[]) => replaced.push(args[2]),
    } as unknown as History;
    const location = { hash: "#code=abc", pathname: "/" } as Location;
    expect(takeCode(location, history)).toBe("abc");
    expect(replaced).toEqual(["/"]);
    expect(takeCode({ hash: "#/sessions", pathname: "/" } as Location, history)).toBeUndefined();
    expect(replaced).toHaveLength(1);
  });
});

describe("exchange", () => {
  const answering = (status: number, body: string) =>
    (async () => new Response(body, { status })) as unknown as typeof fetch;
  const cases = [
    { name: "a token", send: answering(200, '{"token":"t"}'), want: { token: "t" } },
    { name: "a used code", send: answering(401, "{}"), want: { refused: "bad" } },
    { name: "a host in trouble", send: answering(503, ""), want: { refused: "network" } },
    { name: "too many attempts", send: answering(429, ""), want: { refused: "network" } },
    { name: "no JSON", send: answering(200, "<html>"), want: { refused: "bad" } },
    {
      name: "no network",
      send: (() => Promise.reject(new TypeError())) as unknown as typeof fetch,
      want: { refused: "network" },
    },
  ];
  for (const { name, send, want } of cases) {
    it(`reads ${name}`, async () => expect(await exchange("c", "Desk", send)).toEqual(want));
  }
});

describe("routes", () => {
  const routes: Route[] = [
    { at: "inbox" },
    { at: "inbox", key: "a/b c%" },
    { at: "sessions" },
    { at: "session", id: "s/1" },
    { at: "settings" },
  ];
  for (const route of routes) {
    it(`come back from the address: ${formatRoute(route)}`, () => {
      expect(parseRoute(formatRoute(route))).toEqual(route);
    });
  }

  it("take anything else for the inbox, also a broken escape", () => {
    expect(parseRoute("#/nowhere")).toEqual({ at: "inbox" });
    expect(parseRoute("#/card/%E0")).toEqual({ at: "inbox", key: "%E0" });
  });
});

describe("deviceLabel", () => {
  const cases = [
    {
      agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36",
      want: "Chrome on Linux",
    },
    {
      agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) Version/20.0 Safari/604.1",
      want: "Safari on iOS",
    },
    {
      agent: "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Firefox/150.0",
      want: "Firefox on Android",
    },
    { agent: "", want: "Browser" },
  ];
  for (const { agent, want } of cases) {
    it(`says ${want}`, () => expect(deviceLabel(agent)).toBe(want));
  }
});
