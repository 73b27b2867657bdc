import { beforeEach, describe, expect, it } from "vitest";
import { defaults, Keys } from "./keys.ts";

function forbidden(): Storage {
  throw new DOMException("no", "SecurityError");
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const real = () =>
  new Keys(
    () => localStorage,
    () => sessionStorage,
  );

describe("Keys", () => {
  it("gives the module its own items and nothing else", () => {
    localStorage.setItem("mw/draft/a/t", "1");
    localStorage.setItem("other", "2");
    const keys = real();
    keys.token = "secret";
    expect(keys.moduleItems()).toEqual({ "mw/draft/a/t": "1" });
  });

  it("keeps the token, the settings and the tab over a reload", () => {
    const keys = real();
    keys.token = "secret";
    keys.preferences = { ...defaults, language: "zh" };
    const tab = keys.tab(() => "tab-1");
    const again = real();
    expect([again.token, again.preferences.language, again.tab(() => "tab-2")]).toEqual([
      "secret",
      "zh",
      tab,
    ]);
    again.token = undefined;
    expect(real().token).toBeUndefined();
  });

  it("reads settings it does not understand as the defaults", () => {
    for (const text of ["{", "null", '{"theme":"pink","carryOnMs":-1,"letters":"yes"}']) {
      localStorage.setItem("meanwhile/settings", text);
      expect(real().preferences).toEqual(defaults);
    }
  });

  it("works without any storage: this visit remembers, and the module hears that nothing is kept", () => {
    const keys = new Keys(forbidden, forbidden);
    keys.token = "secret";
    keys.preferences = { ...defaults, theme: "dark" };
    expect([keys.token, keys.preferences.theme, keys.durable]).toEqual(["secret", "dark", false]);
    expect(keys.tab(() => "t")).toBe(keys.tab(() => "u"));
    expect(keys.moduleItems()).toEqual({});
    expect(() => keys.set("mw/a", "1")).toThrow();
  });

  it("keeps the words of a place over a reload, and those of another tab when its own are gone", () => {
    const [here, there] = [real(), real()];
    here.keepWords("s1", "half a thou");
    expect([real().words("s1"), real().words("s2")]).toEqual(["half a thou", ""]);
    there.keepWords("s1", "another");
    here.keepWords("s1", "");
    expect(real().words("s1")).toBe("another");
    there.keepWords("s1", "");
    expect(real().words("s1")).toBe("");
    const none = new Keys(forbidden, forbidden);
    none.keepWords("s1", "kept");
    expect(none.words("s1")).toBe("kept");
  });

  it("reloads once for a build", () => {
    const keys = real();
    expect([keys.firstReloadFor("a"), keys.firstReloadFor("a"), keys.firstReloadFor("b")]).toEqual([
      true,
      false,
      true,
    ]);
  });
});
