// The frame around everything: rail, list, main, the banner, the status region, the shortcuts.

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { App } from "../app/app.ts";
import { AppContext, useApp, useStrings } from "./context.ts";
import { globalKeys } from "./globalkeys.ts";
import { Icon, type IconName } from "./icons.tsx";
import { InboxList, InboxMain } from "./inbox.tsx";
import { SettingsLater } from "./later.tsx";
import { SessionList } from "./sessions.tsx";
import { Sheet } from "./sheet.tsx";
import { SignInPage } from "./signin.tsx";
import { SessionPage } from "./transcript.tsx";

export function Root({ app }: { app: App }): VNode {
  return (
    <AppContext.Provider value={app}>
      <Frame />
    </AppContext.Provider>
  );
}

function Frame(): VNode {
  const app = useApp();
  const s = useStrings();
  const [sheet, setSheet] = useState(false);
  const { language, theme } = app.preferences.value;

  useEffect(() => {
    const root = document.documentElement;
    root.lang = s.locale;
    root.dataset.theme = theme;
  }, [s.locale, theme, language]);

  useEffect(() => {
    const onKey = globalKeys(app, () => setSheet((on) => !on));
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [app]);

  const count = app.store.cards.value.needs ?? 0;
  useEffect(() => {
    document.title = count > 0 ? `(${count}) Meanwhile` : "Meanwhile";
  }, [count]);

  if (app.fatal.value !== undefined) return <Fatal detail={app.fatal.value} />;
  const { state } = app.link.value;
  if (state === "signedOut" || (state === "idle" && !app.signedIn)) return <SignInPage />;
  return (
    <>
      <a class="skip" href="#main">
        {s.skipToContent}
      </a>
      <Layout />
      <p class="sr" role="status" aria-live="polite" data-status>
        <span key={app.line.value}>{app.line.value}</span>
      </p>
      {sheet && <Sheet onClose={() => setSheet(false)} />}
    </>
  );
}

function Layout(): VNode {
  const app = useApp();
  const route = app.route.value;
  let list: ComponentChildren;
  let main: ComponentChildren;
  let deep = false;
  switch (route.at) {
    case "inbox":
      list = <InboxList chosen={route.key} />;
      main = <InboxMain chosen={route.key} />;
      deep = route.key !== undefined;
      break;
    case "sessions":
      list = <SessionList chosen={undefined} />;
      main = <EmptySession />;
      break;
    case "session":
      list = <SessionList chosen={route.id} />;
      main = <SessionPage key={route.id} id={route.id} />;
      deep = true;
      break;
    case "settings":
      main = <SettingsLater />;
      deep = true;
      break;
  }
  return (
    <div class={`frame at-${route.at}${deep ? " deep" : ""}`}>
      <Rail />
      <div class="body">
        <Banner />
        <div class="panes">
          {list !== undefined && <nav class="pane-list">{list}</nav>}
          <main class="pane-main" id="main" tabIndex={-1}>
            {main}
          </main>
        </div>
      </div>
    </div>
  );
}

function EmptySession(): VNode {
  return <p class="empty empty-main">{useStrings().pickASession}</p>;
}

function Rail(): VNode {
  const app = useApp();
  const s = useStrings();
  const at = app.route.value.at;
  const needs = app.store.cards.value.needs ?? 0;
  return (
    <nav class="rail" aria-label="Meanwhile">
      <span class="brand" aria-hidden="true">
        Meanwhile
      </span>
      <RailLink icon="inbox" text={s.inbox} href="#/" here={at === "inbox"} count={needs} />
      <RailLink
        icon="sessions"
        text={s.sessions}
        href="#/sessions"
        here={at === "sessions" || at === "session"}
        count={0}
      />
      <RailLink
        icon="settings"
        text={s.settings}
        href="#/settings"
        here={at === "settings"}
        count={0}
      />
    </nav>
  );
}

function RailLink(props: {
  icon: IconName;
  text: string;
  href: string;
  here: boolean;
  count: number;
}): VNode {
  return (
    <a class="rail-link" href={props.href} aria-current={props.here ? "page" : undefined}>
      <Icon name={props.icon} />
      <span class="rail-text">{props.text}</span>
      {props.count > 0 && (
        <span key={props.count} class="count">
          {props.count}
        </span>
      )}
    </a>
  );
}

/** What is wrong with the whole page, if anything: no connection, another version. */
function Banner(): VNode | null {
  const app = useApp();
  const s = useStrings();
  const { state } = app.link.value;
  const cards = app.store.cards.value;
  if (state === "mismatched") {
    return (
      <p class="banner">
        <span>{s.mismatched}</span>
        <button type="button" class="link" onClick={() => location.reload()}>
          {s.reload}
        </button>
      </p>
    );
  }
  if (state === "waiting") {
    return (
      <p class="banner" data-offline>
        <span>{cards.storage === "memory" ? s.offlineMemory : s.offline}</span>
        <button type="button" class="link" onClick={() => app.retry()}>
          {s.retry}
        </button>
      </p>
    );
  }
  if (cards.build === "other") {
    return (
      <p class="banner">
        <span>{s.otherBuild}</span>
      </p>
    );
  }
  if (cards.storage === "memory") {
    return (
      <p class="banner">
        <span>{s.storageMemory}</span>
      </p>
    );
  }
  return null;
}

function Fatal({ detail }: { detail: string }): VNode {
  const s = useStrings();
  return (
    <main class="signin">
      <div class="signin-box">
        <p class="brand">Meanwhile</p>
        <h1>{s.fatalTitle}</h1>
        <p>{s.fatalBody}</p>
        <pre>{detail}</pre>
        <button type="button" class="primary" onClick={() => location.reload()}>
          {s.reload}
        </button>
      </div>
    </main>
  );
}
