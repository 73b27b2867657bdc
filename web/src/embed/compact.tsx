// The inbox without the rest of the page: the list and one card, for an element in another page
// and for an extension's popup and side panel. Sessions and settings open on the host's own page.

import { computed } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { App } from "../app/app.ts";
import { formatRoute } from "../app/route.ts";
import { AppContext, useApp, useStrings } from "../ui/context.ts";
import { Icon } from "../ui/icons.tsx";
import { InboxList, InboxMain } from "../ui/inbox.tsx";
import { isTextField } from "../ui/keys.ts";
import { SignInPage } from "../ui/signin.tsx";

interface Props {
  app: App;
  /** The host's origin. */
  base: string;
  /** What stands where nobody is signed in; absent: the page's own sign-in. */
  signedOut?: ComponentChildren;
  /** Further actions in the head. */
  actions?: ComponentChildren;
}

export function Compact(props: Props): VNode {
  return (
    <AppContext.Provider value={props.app}>
      <Frame {...props} />
    </AppContext.Provider>
  );
}

function Frame({ base, signedOut, actions }: Props): VNode {
  const app = useApp();
  const s = useStrings();
  const route = app.route.value;
  const elsewhere = route.at === "inbox" ? undefined : formatRoute(route);

  // A place that only the host's page has: it opens there, and the inbox stays here.
  useEffect(() => {
    if (elsewhere === undefined) return;
    app.go({ at: "inbox" });
    window.open(`${base}/${elsewhere}`, "_blank", "noopener");
  }, [app, base, elsewhere]);

  // The row of a card changes often; whether anybody is signed in does not.
  const away = useMemo(
    () =>
      computed(
        () =>
          app.link.value.state === "signedOut" ||
          (app.link.value.state === "idle" && !app.signedIn),
      ),
    [app],
  );

  const chosen = route.at === "inbox" ? route.key : undefined;
  const root = useRef<HTMLDivElement>(null);
  // Keys act only inside: the page around has its own.
  useEffect(() => {
    const frame = root.current;
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing || event.key !== "Escape") return;
      if (chosen === undefined || isTextField(event.target)) return;
      event.preventDefault();
      app.go({ at: "inbox" });
    };
    frame?.addEventListener("keydown", onKey);
    return () => frame?.removeEventListener("keydown", onKey);
  }, [app, chosen, away.value]);

  if (app.fatal.value !== undefined) {
    return (
      <p class="empty" role="alert">
        {s.fatalTitle}
        <code>{app.fatal.value}</code>
      </p>
    );
  }
  if (away.value) return <>{signedOut ?? <SignInPage />}</>;
  const needs = app.store.cards.value.needs ?? 0;
  return (
    <div ref={root} class={`frame compact at-inbox${chosen === undefined ? "" : " deep"}`}>
      <header class="compact-head">
        <span class="brand">Meanwhile</span>
        {needs > 0 && <span class="count">{needs}</span>}
        <span class="spring" />
        {actions}
        <a class="icon-button" href={`${base}/`} target="_blank" rel="noopener noreferrer">
          <Icon name="sessions" />
          <span class="sr">{s.sessions}</span>
        </a>
      </header>
      <div class="body">
        <Trouble />
        <div class="panes">
          <nav class="pane-list" aria-label={s.inbox}>
            <InboxList chosen={chosen} />
          </nav>
          <section class="pane-main">
            <InboxMain chosen={chosen} />
          </section>
        </div>
      </div>
      <p class="sr" role="status" aria-live="polite">
        {app.line.value}
      </p>
    </div>
  );
}

/** What is wrong with the whole inbox, if anything. */
function Trouble(): VNode | null {
  const app = useApp();
  const s = useStrings();
  const { state } = app.link.value;
  const memory = app.store.cards.value.storage === "memory";
  if (state === "mismatched") return <p class="banner">{s.mismatched}</p>;
  if (state === "waiting") {
    return (
      <p class="banner" data-offline>
        <span>{memory ? s.offlineMemory : s.offline}</span>
        <button type="button" class="link" onClick={() => app.retry()}>
          {s.retry}
        </button>
      </p>
    );
  }
  return memory ? <p class="banner">{s.storageMemory}</p> : null;
}
