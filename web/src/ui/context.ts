import type { RefObject } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useMemo, useRef } from "preact/hooks";
import type { App } from "../app/app.ts";
import type { Card, RecordView } from "../protocol/view.ts";
import type { Transcript } from "../store/store.ts";
import type { Strings } from "./strings/index.ts";

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("a view outside the app");
  return app;
}

export function useStrings(): Strings {
  return useApp().strings.value;
}

/** The whole card while it is on show. */
export function useCard(key: string): Card | undefined {
  const { store } = useApp();
  const value = useMemo(() => store.showCard(key), [store, key]);
  useEffect(() => () => store.hideCard(key), [store, key]);
  return value.value;
}

export function useTranscript(sessionId: string): Transcript | undefined {
  const app = useApp();
  const value = useMemo(() => app.store.showTranscript(sessionId), [app, sessionId]);
  useEffect(() => app.follow(sessionId), [app, sessionId]);
  useEffect(() => () => app.store.hideTranscript(sessionId), [app, sessionId]);
  return value.value;
}

export function useRecord(sessionId: string, callId: string): RecordView | undefined {
  const { store } = useApp();
  const value = useMemo(() => store.showRecord(sessionId, callId), [store, sessionId, callId]);
  useEffect(() => () => store.hideRecord(sessionId, callId), [store, sessionId, callId]);
  return value.value;
}

/**
 * Whether focus was last seen inside the element. A control that is disabled or leaves the page
 * takes its focus to nowhere, and the person is still in the place where they pressed it.
 */
export function useLastFocus(within: RefObject<HTMLElement | null>): RefObject<boolean> {
  const inside = useRef(false);
  useEffect(() => {
    const onFocus = (event: FocusEvent): void => {
      // Inside a shadow tree the target that the document sees is the tree's host.
      inside.current = within.current?.contains(event.composedPath()[0] as Node) ?? false;
    };
    document.addEventListener("focusin", onFocus);
    return () => document.removeEventListener("focusin", onFocus);
  }, [within]);
  return inside;
}

/** The element in focus, also inside a shadow tree, where the document only knows the tree's host. */
export function focusedNear(element: Element): Element | null {
  const root = element.getRootNode();
  return root instanceof Document || root instanceof ShadowRoot ? root.activeElement : null;
}
