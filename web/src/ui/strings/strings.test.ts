import { describe, expect, it } from "vitest";
import type { Remaining } from "../../store/remaining.ts";
import { en, type Strings, stringsFor, zh } from "./index.ts";

const times: Remaining[] = [
  { unit: "seconds", seconds: 5 },
  { unit: "clock", minutes: 2, seconds: 15 },
  { unit: "minutes", minutes: 12 },
  { unit: "hours", hours: 2, minutes: 0 },
  { unit: "days", days: 1, hours: 3 },
];

/** Every sentence the table can say, with plausible arguments. */
function sentences(s: Strings): [string, string][] {
  const all: [string, string][] = [];
  for (const [name, entry] of Object.entries(s)) {
    if (typeof entry === "string") all.push([name, entry]);
    else if (["timed", "paused", "left"].includes(name)) {
      for (const time of times)
        all.push([name, (entry as (...a: unknown[]) => string)(time, "bot")]);
    } else if (name === "agentTitle") all.push([name, s.agentTitle(s.someAgent)]);
    else if (name === "listAnd") all.push([name, s.listAnd(["a", "b"])]);
    else {
      for (const n of [1, 3]) {
        const say = entry as (...args: unknown[]) => string;
        all.push([name, say(typeof n === "number" ? n : "bot", 3)]);
      }
    }
  }
  return all;
}

describe("the tables", () => {
  it("say everything in both languages", () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    for (const table of [en, zh]) {
      for (const [name, text] of sentences(table)) expect(text, name).not.toBe("");
    }
  });

  it("keep the tone: no exclamation, no word that blames the clock", () => {
    for (const table of [en, zh]) {
      for (const [name, text] of sentences(table)) {
        expect(text, name).not.toMatch(/[!！]/);
        expect(text, name).not.toMatch(/expire|time[d ]?\s?out|timeout|过期|超时/i);
      }
    }
  });

  it("use full-width punctuation in Chinese", () => {
    for (const [name, text] of sentences(zh)) {
      expect(text, name).not.toMatch(/[\u4e00-\u9fff][,.?:;()]/);
    }
  });
});

describe("stringsFor", () => {
  it("follows the setting, then the browser, then English", () => {
    expect(stringsFor("zh", ["en"])).toBe(zh);
    expect(stringsFor("auto", ["fr", "zh-TW", "en"])).toBe(zh);
    expect(stringsFor("auto", ["en-GB", "zh"])).toBe(en);
    expect(stringsFor("auto", [])).toBe(en);
  });
});
