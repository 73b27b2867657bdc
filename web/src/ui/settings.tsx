// Settings of this device.

import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { Preferences } from "../store/keys.ts";
import { useApp, useStrings } from "./context.ts";

const carryOnMinutes = [1, 5, 15, 60];

export function SettingsPage(): VNode {
  const app = useApp();
  const s = useStrings();
  const now = app.preferences.value;
  const [denied, setDenied] = useState(false);

  const notify = async (on: boolean): Promise<void> => {
    setDenied(false);
    if (on && "Notification" in window && Notification.permission !== "granted") {
      const permission = await Notification.requestPermission();
      if (permission !== "granted") {
        setDenied(true);
        return;
      }
    }
    app.prefer({ notify: on });
  };

  return (
    <div class="settings">
      <h1>{s.settings}</h1>
      <Choice
        label={s.language}
        value={now.language}
        options={[
          ["auto", s.languageAuto],
          ["en", "English"],
          ["zh", "中文"],
        ]}
        onChoose={(language) => app.prefer({ language: language as Preferences["language"] })}
      />
      <Choice
        label={s.theme}
        value={now.theme}
        options={[
          ["auto", s.themeAuto],
          ["light", s.themeLight],
          ["dark", s.themeDark],
        ]}
        onChoose={(theme) => app.prefer({ theme: theme as Preferences["theme"] })}
      />
      <Choice
        label={s.carryOn}
        value={String(now.carryOnMs)}
        options={[
          ["0", s.carryOnNever],
          ...carryOnMinutes.map((n): [string, string] => [String(n * 60_000), s.carryOnAfter(n)]),
        ]}
        onChoose={(ms) => app.prefer({ carryOnMs: Number(ms) })}
      />
      <Switch label={s.letters} hint={s.lettersHint} on={now.letters}>
        {(on) => app.prefer({ letters: on })}
      </Switch>
      <Switch
        label={s.notifications}
        hint={denied ? s.notificationsDenied : s.notificationsHint}
        on={now.notify}
      >
        {(on) => void notify(on)}
      </Switch>
      <section class="setting">
        <h2>{s.device}</h2>
        <p class="faint">{s.hostVersion(app.welcome.value?.hostVersion ?? "…")}</p>
        <button type="button" class="quiet" onClick={() => app.signOut()}>
          {s.signOut}
        </button>
      </section>
    </div>
  );
}

function Choice(props: {
  label: string;
  value: string;
  options: readonly [string, string][];
  onChoose: (value: string) => void;
}): VNode {
  return (
    <label class="setting">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Switch(props: {
  label: string;
  hint: string;
  on: boolean;
  children: (on: boolean) => void;
}): VNode {
  const hint: ComponentChildren = <span class="faint">{props.hint}</span>;
  return (
    <label class="setting">
      <span>
        <span>{props.label}</span>
        {hint}
      </span>
      <input
        type="checkbox"
        checked={props.on}
        onChange={(event) => props.children(event.currentTarget.checked)}
      />
    </label>
  );
}
