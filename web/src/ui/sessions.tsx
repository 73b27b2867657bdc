// The list of sessions, and the few things that can be done to one.

import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { failureText } from "../app/say.ts";
import { agentName, type SessionRow, statusWord } from "../protocol/view.ts";
import { useApp, useStrings } from "./context.ts";
import { EnterWatch } from "./enter.ts";
import { Icon } from "./icons.tsx";
import type { Strings } from "./strings/index.ts";
import { visible } from "./text.ts";

export function SessionList({ chosen }: { chosen: string | undefined }): VNode {
  const app = useApp();
  const s = useStrings();
  const [search, setSearch] = useState("");
  const view = app.store.sessions.value;
  const wanted = search.toLocaleLowerCase();
  const [archive, setArchive] = useState(false);
  const all = view.sessions ?? [];
  const archived = all.filter((row) => row.archived).length;
  const rows = all.filter(
    (row) =>
      (archive || !row.archived || row.open) &&
      (wanted === "" ||
        `${row.title ?? ""} ${agentName(row.agent)}`.toLocaleLowerCase().includes(wanted)),
  );
  return (
    <div class="list" data-list>
      <NewSession />
      <input
        type="search"
        class="search"
        value={search}
        placeholder={s.search}
        aria-label={s.search}
        data-search
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {!view.known && <p class="empty">{s.loading}</p>}
      {view.known && rows.length === 0 && (
        <p class="empty">{search === "" ? s.noSessions : s.noMatch}</p>
      )}
      <ul>
        {rows.map((row) => (
          <li key={row.id}>
            <button
              type="button"
              class={`row row-session${row.open ? " row-unread" : ""}`}
              aria-current={row.id === chosen ? "true" : undefined}
              data-row={row.id}
              onClick={() => app.go({ at: "session", id: row.id })}
            >
              <span class="row-top">
                <span class="row-title" dir="auto">
                  {visible(row.title || s.untitled)}
                </span>
                <span class="row-time">{statusText(row, s)}</span>
              </span>
              <span class="row-text" dir="auto">
                {detailText(row, s)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {archived > 0 && (
        <button
          type="button"
          class="link"
          aria-expanded={archive}
          onClick={() => setArchive(!archive)}
        >
          {archive ? s.hideArchived : s.showArchived(archived)}
        </button>
      )}
    </div>
  );
}

function statusText(row: SessionRow, s: Strings): string {
  switch (statusWord(row.status)) {
    case "running":
      return s.statusRunning;
    case "aborted":
      return s.turnAborted;
    case "error":
      return s.statusError;
    case "interrupted":
      return s.interrupted;
    case "damaged":
      return s.statusDamaged;
    default:
      return "";
  }
}

function detailText(row: SessionRow, s: Strings): string {
  const parts = [
    agentName(row.agent),
    row.open ? s.openAsks(row.open) : "",
    row.late ? s.lateAsks(row.late) : "",
    row.queued ? s.queuedReplies(row.queued) : "",
    typeof row.note === "string" && row.note !== "" ? s.noteWaits : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Where the words of a session lie that does not exist yet; ids are random and never this. */
const newPlace = "new";

/** A first message makes a session; its title is the message's own first line. */
function NewSession(): VNode {
  const app = useApp();
  const s = useStrings();
  const area = useRef<HTMLTextAreaElement>(null);
  const [enter] = useState(() => new EnterWatch());
  const [words] = useState(() => app.words(newPlace));
  const [busy, setBusy] = useState(false);
  const [note, setNote] = useState("");

  const create = async (): Promise<void> => {
    const text = area.current?.value.trim() ?? "";
    if (busy || text === "") return;
    setBusy(true);
    setNote("");
    try {
      const id = await app.createSession(text);
      if (area.current) area.current.value = "";
      app.keepWords(newPlace, "");
      app.go({ at: "session", id });
    } catch (error) {
      setNote(failureText(error, s));
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      class="new-session"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <textarea
        ref={area}
        class="own-text own-boxed"
        dir="auto"
        rows={1}
        defaultValue={words}
        placeholder={s.firstMessage}
        aria-label={s.newSession}
        data-new
        onInput={(event) => app.keepWords(newPlace, event.currentTarget.value)}
        onCompositionStart={() => enter.compositionStart()}
        onCompositionEnd={(event) => enter.compositionEnd(event.timeStamp)}
        onKeyDown={(event) => {
          if (!enter.isReal(event)) return;
          event.preventDefault();
          void create();
        }}
      />
      <button type="submit" class="icon-button" aria-label={s.create} disabled={busy}>
        <Icon name="plus" />
      </button>
      {note && (
        <p class="note" role="status">
          {note}
        </p>
      )}
    </form>
  );
}

interface ActionsProps {
  id: string;
  title: string;
  row: SessionRow | undefined;
}

export function SessionActions({ id, title, row }: ActionsProps): VNode {
  const app = useApp();
  const s = useStrings();
  const [open, setOpen] = useState<"" | "menu" | "rename" | "delete">("");
  const [note, setNote] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const word = statusWord(row?.status);
  const runs = word === "running";
  const halted = ["aborted", "error", "interrupted"].includes(word) || Boolean(row?.note);

  const run = async (method: string, params: object = {}): Promise<boolean> => {
    setNote("");
    try {
      await app.call(method, { sessionId: id, ...params });
      setOpen("");
      return true;
    } catch (error) {
      setNote(failureText(error, s));
      return false;
    }
  };
  const rename = async (): Promise<void> => {
    const wanted = input.current?.value.trim() ?? "";
    if (wanted !== "") await run("session/rename", { title: wanted });
  };
  const leave = async (method: string): Promise<void> => {
    if (await run(method)) app.go({ at: "sessions" });
  };
  const fork = async (): Promise<void> => {
    try {
      const forked = await app.forkSession(id, s.forkOf(title));
      setOpen("");
      app.go({ at: "session", id: forked });
    } catch (error) {
      setNote(failureText(error, s));
    }
  };

  return (
    <div class="actions">
      {runs && (
        <button type="button" class="quiet" onClick={() => void run("session/cancel")}>
          {s.stop}
        </button>
      )}
      {!runs && halted && (
        <button type="button" class="quiet" onClick={() => void run("session/continue")}>
          {s.continue}
        </button>
      )}
      <button
        type="button"
        class="icon-button"
        aria-label={s.actions}
        aria-expanded={open !== ""}
        onClick={() => setOpen(open === "" ? "menu" : "")}
      >
        <Icon name="more" />
      </button>
      {open !== "" && (
        // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes what is inside
        <div
          class="menu"
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            setOpen("");
          }}
        >
          {open === "menu" && (
            <>
              <button type="button" onClick={() => setOpen("rename")}>
                {s.rename}
              </button>
              <button type="button" onClick={() => void fork()}>
                {s.fork}
              </button>
              <button type="button" onClick={() => void leave("session/archive")}>
                {s.archive}
              </button>
              <button type="button" class="danger" onClick={() => setOpen("delete")}>
                {s.delete}
              </button>
            </>
          )}
          {open === "rename" && (
            <form
              onSubmit={(event) => {
                event.preventDefault();
                void rename();
              }}
            >
              <label>
                <span>{s.renameTo}</span>
                <input ref={input} type="text" defaultValue={title} maxLength={200} dir="auto" />
              </label>
              <button type="submit" class="primary">
                {s.save}
              </button>
            </form>
          )}
          {open === "delete" && (
            <>
              <p>{s.deleteSure}</p>
              <button type="button" onClick={() => setOpen("")}>
                {s.keep}
              </button>
              <button type="button" class="danger" onClick={() => void leave("session/delete")}>
                {s.deleteNow}
              </button>
            </>
          )}
          {note && (
            <p class="note" role="status">
              {note}
            </p>
          )}
        </div>
      )}
    </div>
  );
}
