// Keys of the page as a whole. None acts in a text field, with a modifier, or while composing.

import type { App } from "../app/app.ts";
import { isTextField } from "./keys.ts";

/** `g` waits this long for the second letter. */
const chordMs = 1_000;

export function globalKeys(app: App, toggleSheet: () => void): (event: KeyboardEvent) => void {
  let chordAt = Number.NEGATIVE_INFINITY;
  return (event) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Over an open sheet the page below stays as it is; Escape is the sheet's own.
    if (event.key !== "?" && document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (isTextField(event.target)) (event.target as HTMLElement).blur();
      else back(app);
      return;
    }
    if (isTextField(event.target)) return;
    const inList = event.target instanceof Element && event.target.closest("[data-list]") !== null;
    if (inList && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      moveRow(event.key === "ArrowDown" ? 1 : -1);
      return;
    }
    if (!app.preferences.value.letters) return;
    if (event.timeStamp - chordAt < chordMs) {
      chordAt = Number.NEGATIVE_INFINITY;
      if (event.key === "i") app.go({ at: "inbox" });
      if (event.key === "s") app.go({ at: "sessions" });
      return;
    }
    switch (event.key) {
      case "g":
        chordAt = event.timeStamp;
        return;
      case "j":
        moveRow(1);
        return;
      case "k":
        moveRow(-1);
        return;
      case "/": {
        const field = document.querySelector<HTMLElement>("[data-search]");
        if (!field) return;
        event.preventDefault();
        field.focus();
        return;
      }
      case "?":
        toggleSheet();
        return;
    }
  };
}

function back(app: App): void {
  const route = app.route.value;
  if (route.at === "inbox" && route.key !== undefined) {
    const { key } = route;
    app.go({ at: "inbox" });
    focusRow(key);
  } else if (route.at === "session") {
    const { id } = route;
    app.go({ at: "sessions" });
    focusRow(id);
  }
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-list] [data-row]")];
}

function focusRow(id: string): void {
  rows()
    .find((row) => row.dataset.row === id)
    ?.focus();
}

function moveRow(by: 1 | -1): void {
  const all = rows();
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to =
    at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[to]?.focus();
}
