// The settings of notifications: asked for from a click, never by themselves.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isObject } from "../rpc/frame.ts";
import type { Preferences } from "../store/keys.ts";
import { useApp, useStrings } from "../ui/context.ts";
import { Switch } from "../ui/control.tsx";
import { writeDevice } from "../worker/device.ts";
import { type PushState, turnOff, turnOn } from "./push.ts";
import { wordsFor } from "./words.ts";

const nightHours = "22:00-07:00";

export function NotifySettings(): VNode {
  const app = useApp();
  const s = useStrings();
  const w = wordsFor(s);
  const now = app.preferences.value;
  const [denied, setDenied] = useState(false);
  const [push, setPush] = useState<PushState | undefined>(now.push ? "on" : undefined);

  const change = (to: Partial<Preferences>): void => {
    app.prefer(to);
    void tellWorker(app.preferences.value, s.locale, app.token);
  };

  const notify = async (on: boolean): Promise<void> => {
    setDenied(false);
    if (!on) {
      change({ notify: false, push: false });
      setPush(undefined);
      await turnOff(window, (method, params) => app.call(method, params));
      return;
    }
    if (!("Notification" in window) || (await Notification.requestPermission()) !== "granted") {
      setDenied(true);
      return;
    }
    change({ notify: true });
    const state = await turnOn(window, (method, params) => app.call(method, params));
    setPush(state);
    change({ push: state === "on" });
  };

  const hint = denied
    ? s.notificationsDenied
    : !now.notify || push === undefined
      ? s.notificationsHint
      : push === "on"
        ? w.pushOn
        : push === "unsupported"
          ? w.pageOnly
          : w.pushFailed(push.failed);

  return (
    <>
      <Switch label={s.notifications} hint={hint} on={now.notify}>
        {(on) => void notify(on)}
      </Switch>
      {now.notify && (
        <>
          <Switch label={w.sound} hint="" on={now.sound}>
            {(sound) => change({ sound })}
          </Switch>
          <Switch label={w.quiet} hint={w.quietHint} on={now.quiet !== ""}>
            {(on) => change({ quiet: on ? nightHours : "" })}
          </Switch>
          {now.quiet !== "" && <Hours value={now.quiet} onChange={(quiet) => change({ quiet })} />}
        </>
      )}
      <Channels />
    </>
  );
}

/** The worker's copy. Without a cache (a private window) the worker goes by its defaults. */
async function tellWorker(now: Preferences, locale: string, token?: string): Promise<void> {
  if (!("caches" in window)) return;
  await writeDevice(window.caches, {
    ...(token !== undefined && now.push ? { token } : {}),
    language: locale.startsWith("zh") ? "zh" : "en",
    sound: now.sound,
    quiet: now.quiet,
  }).catch(() => {});
}

function Hours(props: { value: string; onChange: (value: string) => void }): VNode {
  const w = wordsFor(useStrings());
  const [from = "", to = ""] = props.value.split("-");
  const field = (label: string, value: string, set: (value: string) => void): VNode => (
    <label>
      <span>{label}</span>{" "}
      <input
        type="time"
        value={value}
        onChange={({ currentTarget }) => currentTarget.value && set(currentTarget.value)}
      />
    </label>
  );
  return (
    <div class="setting">
      {field(w.from, from, (v) => props.onChange(`${v}-${to}`))}
      {field(w.to, to, (v) => props.onChange(`${from}-${v}`))}
    </div>
  );
}

interface Target {
  id: string;
  kind: string;
  where: string;
  label?: string;
  sent: number;
  error?: string;
}

function Channels(): VNode {
  const app = useApp();
  const w = wordsFor(useStrings());
  const [targets, setTargets] = useState<Target[]>([]);
  const [text, setText] = useState(false);
  const [told, setTold] = useState<number | undefined>();
  const online = app.link.value.state === "online";

  const load = async (): Promise<void> => {
    const report = await app.call("notify/status", {}).catch(() => undefined);
    if (!isObject(report) || !Array.isArray(report.targets)) return;
    setTargets(report.targets as Target[]);
    setText(report.text === true);
  };
  useEffect(() => {
    if (!online) return;
    void load();
    const timer = setInterval(() => void load(), 5000);
    return () => clearInterval(timer);
  }, [online]);

  const test = async (): Promise<void> => {
    const result = await app.call("notify/test", {}).catch(() => undefined);
    setTold(isObject(result) && typeof result.told === "number" ? result.told : 0);
    await load();
  };

  return (
    <section class="setting device">
      <h2>{w.channels}</h2>
      <p class="faint">{text ? w.textLeaves : w.textStays}</p>
      {targets.length === 0 && <p class="faint">{w.noChannels}</p>}
      <ul>
        {targets.map((t) => (
          <li key={t.id} data-target={t.kind}>
            <span>
              {w.kinds[t.kind] ?? t.kind} · {t.label || t.where}
            </span>
            <span class="faint">{t.error ? w.failing(t.error) : w.works(t.sent)}</span>
          </li>
        ))}
      </ul>
      <p class="faint" role="status">
        {told !== undefined && w.tested(told)}
      </p>
      <button type="button" class="quiet" data-act="test" onClick={() => void test()}>
        {w.test}
      </button>
    </section>
  );
}
