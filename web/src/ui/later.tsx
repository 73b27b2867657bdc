// The settings are not needed at first sight: their code comes when they are opened.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useStrings } from "./context.ts";

export function SettingsLater(): VNode {
  const s = useStrings();
  const [View, setView] = useState<(() => VNode) | undefined>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let gone = false;
    import("./settings.tsx").then(
      (module) => !gone && setView(() => module.SettingsPage),
      () => !gone && setFailed(true),
    );
    return () => {
      gone = true;
    };
  }, []);
  if (View) return <View />;
  return <p class="empty empty-main">{failed ? s.offline : s.settings}</p>;
}
