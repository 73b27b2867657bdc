import { describe, expect, it } from "vitest";
import { PartOfStorage } from "./storage.ts";

describe("a part of a storage", () => {
  it("keeps two hosts and the page's own things apart", () => {
    localStorage.clear();
    localStorage.setItem("page", "own");
    const a = new PartOfStorage(localStorage, "meanwhile http://a ");
    const b = new PartOfStorage(localStorage, "meanwhile http://b ");
    a.setItem("token", "1");
    b.setItem("token", "2");
    a.setItem("mw/draft", "x");
    expect(a.getItem("token")).toBe("1");
    expect(b.getItem("token")).toBe("2");
    expect(a.getItem("page")).toBeNull();
    expect([a.length, b.length]).toEqual([2, 1]);
    expect([a.key(0), a.key(1), a.key(2)].toSorted()).toEqual(
      ["mw/draft", "token", null].toSorted(),
    );
    a.clear();
    expect([a.length, b.length, localStorage.getItem("page")]).toEqual([0, 1, "own"]);
  });
});
