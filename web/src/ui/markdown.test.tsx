import { render } from "preact";
import { beforeEach, describe, expect, it } from "vitest";
import { Markdown, markdownCharsMax } from "./markdown.tsx";
import { en } from "./strings/index.ts";
import { linkHost, moment, visible } from "./text.ts";

let root: HTMLElement;
beforeEach(() => {
  root = document.createElement("div");
});

function draw(text: string): HTMLElement {
  render(<Markdown text={text} strings={en} />, root);
  return root;
}

describe("Markdown is inert", () => {
  const hostile = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    '<a href="https://evil.example" onclick="x()">a</a>',
    "a <b>bold</b> <iframe src=//evil.example></iframe> c",
    "<svg onload=x()>",
    "<!-- comment --> <style>*{display:none}</style>",
    "<details open ontoggle=x()>",
  ];
  for (const text of hostile) {
    it(`shows ${text} as the text it is`, () => {
      const shown = draw(text);
      expect(shown.querySelector("script, img, iframe, svg, style, details, b, a")).toBeNull();
      for (const element of shown.querySelectorAll("*")) {
        for (const { name } of element.attributes) expect(name.startsWith("on")).toBe(false);
      }
      for (const tag of text.match(/<[^>]*>/g) ?? []) expect(shown.textContent).toContain(tag);
    });
  }

  it("names an image and loads nothing", () => {
    const shown = draw(
      "![a chart](https://evil.example/t.png?x=1)\n\n![ref][r]\n\n[r]: https://e.example",
    );
    expect(shown.querySelector("img")).toBeNull();
    expect(shown.innerHTML).not.toContain("t.png");
    expect(shown.textContent).toContain("[image: a chart]");
  });

  it("shows where a link leads, and gives it neither opener nor referrer", () => {
    const link = draw("[my bank](https://evil.example/login)").querySelector("a");
    expect(link?.getAttribute("href")).toBe("https://evil.example/login");
    expect(link?.getAttribute("rel")).toContain("noopener noreferrer");
    expect(root.textContent).toContain("(evil.example)");
  });

  for (const url of [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "/local",
    "vbscript:x",
  ]) {
    it(`makes no link of ${url}`, () => {
      const shown = draw(`[go](${url}) and <${url}>`);
      expect(shown.querySelector("a")).toBeNull();
      expect(shown.textContent).toContain("go");
    });
  }
});

describe("Markdown", () => {
  it("draws blocks, tables and code", () => {
    const shown = draw(
      "# Head\n\n- one\n- two `x`\n\n1. a\n\n> q\n\n```sh\nrm -rf <x>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    );
    expect(shown.querySelectorAll("li")).toHaveLength(3);
    expect(shown.querySelector("pre")?.textContent).toBe("rm -rf <x>");
    expect([...shown.querySelectorAll("th,td")].map((cell) => cell.textContent)).toEqual([
      "a",
      "b",
      "1",
      "2",
    ]);
    expect(shown.querySelector("h1, h2")).toBeNull();
  });

  it("decodes common character references and leaves others as written", () => {
    expect(draw("a &amp; b &mdash; &#955; &nosuchthing;").textContent).toBe(
      "a & b — λ &nosuchthing;",
    );
  });

  it("does not parse what would freeze the page", () => {
    const shown = draw("*".repeat(markdownCharsMax + 1));
    expect(shown.querySelector("em, strong, li")).toBeNull();
  });

  it("survives deep nesting", () => {
    expect(() => draw(`${"> ".repeat(400)}deep`)).not.toThrow();
  });
});

describe("text", () => {
  it("shows characters that reorder others", () => {
    expect(visible("a\u202eb\u2066c")).toBe("a⟨RLO⟩b⟨LRI⟩c");
    expect(visible("שלום é 文")).toBe("שלום é 文");
  });

  it("follows only the web's own schemes", () => {
    expect(linkHost("https://a.example:8/x")?.host).toBe("a.example:8");
    for (const url of ["javascript:x", "mailto:a@b", "x", ""])
      expect(linkHost(url)).toBeUndefined();
  });

  it("adds the date to a moment of another day", () => {
    const now = new Date(2026, 10, 30, 20, 0).getTime();
    expect(moment(new Date(2026, 10, 30, 14, 5).getTime(), now, "en")).toBe("14:05");
    expect(moment(new Date(2026, 10, 4, 14, 5).getTime(), now, "en")).toBe("Nov 4 14:05");
  });
});
