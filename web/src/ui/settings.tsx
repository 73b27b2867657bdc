// Settings of this device.

import type { VNode } from "preact";
import { PhoneSettings, TokenSettings } from "../device/access.tsx";
import { NotifySettings } from "../device/notify.tsx";
import type { Preferences } from "../store/keys.ts";
import { useApp, useStrings } from "./context.ts";
import { Choice, Switch } from "./control.tsx";

const carryOnMinutes = [1, 5, 15, 60];

export function SettingsPage(): VNode {
  const app = useApp();
  const s = useStrings();
  const now = app.preferences.value;
  const admin = app.welcome.value?.scopes.includes("admin") ?? false;

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
      <NotifySettings />
      {admin && <PhoneSettings />}
      {admin && <TokenSettings />}
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
