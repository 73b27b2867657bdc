import { describe, expect, it } from "vitest";
import { scoped } from "./scope.ts";

describe("scoped", () => {
  for (const [name, css, want] of [
    ["tokens", ":root{--bg:#fff}", ":host{--bg:#fff}"],
    ["a theme", ':root[data-theme="dark"]{color:red}', ':host([data-theme="dark"]){color:red}'],
    ["a language", ":root:lang(zh){--leading:1.7}", ":host(:lang(zh)){--leading:1.7}"],
    ["the document", "html{height:100%}", ":host{height:100%}"],
    ["the body", "body,#root{margin:0}", ".mw-root,#root{margin:0}"],
    ["classes that hold the word", ".body{a:b}.html{c:d}", ".body{a:b}.html{c:d}"],
    [
      "the window's width",
      "@media (max-width:699px){a{b:c}}",
      "@container (max-width:699px){a{b:c}}",
    ],
    ["a range", "@media (width<=699px){a{b:c}}", "@container (width<=699px){a{b:c}}"],
    [
      "a preference",
      "@media (forced-colors:active){a{b:c}}",
      "@media (forced-colors:active){a{b:c}}",
    ],
  ] as const) {
    it(name, () => expect(scoped(css)).toBe(want));
  }
});
