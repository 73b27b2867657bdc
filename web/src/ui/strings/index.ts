import type { Preferences } from "../../store/keys.ts";
import { en, type Strings } from "./en.ts";
import { zh } from "./zh.ts";

export type { Strings };
export { en, zh };

export function stringsFor(language: Preferences["language"], browser: readonly string[]): Strings {
  if (language !== "auto") return language === "zh" ? zh : en;
  for (const tag of browser) {
    const primary = tag.toLowerCase().split("-")[0];
    if (primary === "zh") return zh;
    if (primary === "en") return en;
  }
  return en;
}
