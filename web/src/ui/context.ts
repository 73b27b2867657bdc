import { createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
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
