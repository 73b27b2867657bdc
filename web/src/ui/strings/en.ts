// English. Calm, verbs on buttons, no blame, no exclamation marks. Every sentence is whole: none
// is put together from pieces, because other languages order them differently.

import type { Remaining } from "../../store/remaining.ts";

function left(time: Remaining): string {
  switch (time.unit) {
    case "seconds":
      return `0:${String(time.seconds).padStart(2, "0")}`;
    case "clock":
      return `${time.minutes}:${String(time.seconds).padStart(2, "0")}`;
    case "minutes":
      return `${time.minutes} min`;
    case "hours":
      return time.minutes === 0 ? `${time.hours} h` : `${time.hours} h ${time.minutes} min`;
    case "days":
      return time.hours === 0 ? `${time.days} d` : `${time.days} d ${time.hours} h`;
  }
}

function count(n: number, one: string, many: string): string {
  return n === 1 ? `1 ${one}` : `${n} ${many}`;
}

/** An agent without a name, inside a sentence. */
const someAgent = "the agent";

/** At the start of one. */
function starts(agent: string): string {
  return agent === someAgent ? "The agent" : agent;
}

export const en = {
  locale: "en",
  left,
  someAgent,
  agentTitle: starts,
  untitled: "Untitled session",

  // places
  inbox: "Inbox",
  sessions: "Sessions",
  settings: "Settings",
  back: "Back",
  needsYou: "Needs you",
  carriedOn: "Carried on, still useful",
  onTheWay: "On its way",
  keptText: "Your text, kept",
  answeredToday: "Answered",
  search: "Search",
  skipToContent: "Skip to content",

  // the countdown line
  timed: (time: Remaining, agent: string) =>
    `${left(time)}, then ${agent} carries on and you can still answer`,
  atZero: (agent: string) => `${starts(agent)} is carrying on. You can still answer`,
  paused: (time: Remaining | undefined) =>
    time ? `Paused while you are here · ${left(time)}` : "Paused while you are here",
  waitingForYou: "Waiting for you",
  blocking: (agent: string) => `${starts(agent)} waits for you`,
  carriedOnAt: (at: string) => `Carried on at ${at}. Your answer will still reach it.`,
  carriedOnLine: "Carried on. Your answer will still reach it.",
  waits: "waits",
  offlineAgent: (agent: string) => `${starts(agent)} is offline. It gets this when it returns.`,

  // answering
  takeTime: "Take time",
  skip: "Skip",
  skipped: "Skipped",
  unskip: "Answer instead",
  send: "Send",
  sendLate: "Send late answer",
  sendAgain: "Send again",
  sendKeys: "Ctrl ↵",
  hide: "Put away",
  close: "Close",
  recommended: "Recommended",
  ownWords: "Your own words",
  yourAnswer: "Your answer",
  filterOptions: "Filter options",
  noOptionMatches: "No option matches",
  pickOne: "Choose one",
  pickAny: "Choose any number",
  showAll: "Show all",
  showLess: "Show less",
  questionOf: (n: number, of: number) => `Question ${n} of ${of}`,
  previous: "Previous question",
  next: "Next question",
  restored: "Draft restored",
  storageMemory: "This browser keeps nothing for this page, so your text lives only in this tab.",
  moreCards: (n: number) => count(n, "more question here", "more questions here"),
  asks: (agent: string, text: string) => `${starts(agent)} asks: ${text}`,
  open: "Open",
  openSession: "Open session",

  // submit
  sent: "Sent, waiting for the agent",
  resend: "Connection lost. Your answer goes again as soon as it is back.",
  settling: "Answered elsewhere, waiting for the record",
  inInbox: (agent: string) => `In ${agent}'s inbox`,
  readInTurn: (turn: number) => `Read in turn ${turn}`,
  submitAgain: "The agent had just carried on. Send once more?",
  notAccepted: "This question no longer takes answers. Your text is kept.",
  discarded: "The agent's inbox let this answer go. Your text is kept, so you can send it again.",
  replyQueued: "Another answer to this question is already on its way.",
  failed: (detail: string) => `Not sent: ${detail}. Your text is kept.`,
  failedPlain: "Not sent. Your text is kept.",
  unanswered: "Answer or skip this one, then send.",
  refusedAt: (n: number, detail: string) => `Question ${n} was not taken: ${detail}`,
  refused: (detail: string) => `Not taken: ${detail}`,
  view: "View",
  cancelReply: "Take back",

  // the end of a card
  answeredBy: (who: string, what: string) => `Answered by ${who} · ${what}. Your text is kept.`,
  answeredByPlain: (who: string) => `Answered by ${who}. Your text is kept.`,
  answeredElsewhere: (what: string) => `Answered elsewhere · ${what}. Your text is kept.`,
  answeredElsewherePlain: "Answered elsewhere. Your text is kept.",
  answered: "Answered",
  answeredWith: (what: string) => `Answered · ${what}`,
  withdrawn: (agent: string) => `${starts(agent)} no longer needs this.`,
  cancelled: "Closed without an answer.",
  aborted: (agent: string) => `${starts(agent)} was stopped before it read an answer.`,
  closed: (agent: string) => `${starts(agent)} has moved on from this question.`,
  sessionGone: "This session is gone. Your text is kept here.",
  copy: "Copy",
  copied: "Copied",
  copyFailed: "This browser did not allow copying. Select the text instead.",
  sendAsMessage: "Send as a message",
  dismiss: "Dismiss",
  chosen: "Chosen",

  // plan review
  plan: "Plan",
  requestChanges: "Request changes",
  changesLabel: "What should change",
  changesHint: "Left empty, this sends the plan back without a word.",

  // the ask row of a transcript
  askWaiting: (n: number) =>
    n > 1 ? `${n} questions, waiting for your answer` : "Waiting for your answer",
  askPending: (n: number) => (n > 1 ? `${n} questions, not answered yet` : "Not answered yet"),
  askQueued: "Answer on its way",
  askAnswered: (n: number, of: number) => `Answered ${n} of ${of}`,
  askCancelled: "Closed without an answer",
  askInterrupted: "Interrupted, nobody answered",
  askWithdrawn: "Withdrawn by the agent",
  askClosed: "Ended without an answer",
  askError: (code: string) =>
    code
      ? `Not asked, the agent's call was wrong: ${code}`
      : "Not asked, the agent's call was wrong",
  askAmbiguous: (n: number) => count(n, "question", "questions"),
  askName: "Question",
  actionOpen: "Open",
  actionAnswer: "Answer",
  actionView: "View answers",
  actionCancel: "Take back",

  // transcript
  turnSummary: (steps: number, tools: number) =>
    `${count(steps, "step", "steps")}, ${count(tools, "tool call", "tool calls")}`,
  groupSummary: (n: number) => count(n, "item", "items"),
  withReplies: (n: number) => count(n, "late answer", "late answers"),
  lateAnswer: "Late answer",
  lateAnswerBy: (who: string) => `Late answer from ${who}`,
  reasoning: "Thinking",
  working: "Working",
  interrupted: "Interrupted",
  toolRunning: "running",
  toolError: "error",
  toolInterrupted: "interrupted",
  turnAborted: "Stopped",
  turnError: (detail: string) => `Ended with an error: ${detail}`,
  turnErrorPlain: "Ended with an error",
  turnMaxTokens: "Ended at the length limit",
  turnBlocked: "Ended: blocked",
  turnInterrupted: "Interrupted by a restart",
  earlier: (n: number) => count(n, "earlier turn is not shown", "earlier turns are not shown"),
  loading: "Opening",
  stale: "Offline. This is the state of a moment ago.",
  transcriptGone: "This session was deleted.",
  transcriptError: (detail: string) => `This session cannot be shown: ${detail}`,
  emptyTranscript: "Nothing here yet. Say what should be done.",

  // composer and sessions
  messagePlaceholder: "Message",
  newSession: "New session",
  create: "Create",
  firstMessage: "What should be done",
  stop: "Stop",
  continue: "Continue",
  rename: "Rename",
  renameTo: "New title",
  archive: "Archive",
  delete: "Delete",
  deleteSure: "Delete this session and everything in it? This cannot be undone.",
  deleteNow: "Delete for good",
  keep: "Keep",
  fork: "Fork",
  forkOf: (title: string) => `${title} (fork)`,
  actions: "Actions",
  save: "Save",
  noSessions: "No sessions yet.",
  noMatch: "Nothing matches.",
  openAsks: (n: number) => count(n, "question open", "questions open"),
  lateAsks: (n: number) => count(n, "question still useful", "questions still useful"),
  queuedReplies: (n: number) => count(n, "answer on its way", "answers on their way"),
  statusRunning: "Working",
  statusDamaged: "Damaged, read only",
  statusError: "Ended with an error",
  noteWaits: "A message waits until this session goes on",
  hideArchived: "Hide archived sessions",
  showArchived: (n: number) => count(n, "archived session", "archived sessions"),
  notAllowed: "This device may not do that.",
  actionFailed: (detail: string) => `That did not work: ${detail}`,

  // empty, first run
  nothingNeedsYou: "Nothing needs you. Agents are working.",
  nothingNeedsYouIdle: "Nothing needs you.",
  pickACard: "Choose a question on the left.",
  pickASession: "Choose a session on the left.",
  connectAgent: "Connect an agent",
  connectIntro: "Run one of these where your agent lives. Its questions will appear here.",
  waitingFirst: "Waiting for the first question",
  orCreate: "Or start a session with the built-in agent.",

  // connection, sign-in, faults
  offline: "Offline. Your text is safe on this device.",
  offlineMemory: "Offline. Your text is kept while this tab is open.",
  retry: "Try now",
  signInTitle: "Sign in",
  signInBody: "Open the link that this command prints on the machine where Meanwhile runs:",
  signInPaste: "Or paste the link or its code here",
  signInButton: "Sign in",
  signInBad: "That link has been used already, or is not one of this host. Ask for a new one.",
  signInNetwork: "The host did not answer. Try again in a moment.",
  signOut: "Sign out",
  mismatched: "This page and the host are of different versions.",
  reload: "Reload",
  otherBuild: "A new version is ready. The page reloads when nothing is being written.",
  fatalTitle: "This page has stopped",
  fatalBody: "Your text is saved on this device. Reload to go on.",

  // settings
  language: "Language",
  languageAuto: "As the browser",
  theme: "Appearance",
  themeAuto: "As the system",
  themeLight: "Light",
  themeDark: "Dark",
  letters: "Single-letter shortcuts",
  lettersHint: "They never act while you write.",
  notifications: "Notifications",
  notificationsHint: "When this page is not in view. Asks the browser for permission.",
  notificationsDenied: "The browser does not allow them for this page.",
  carryOn: "When I started and left a question alone",
  carryOnNever: "Keep waiting for me",
  carryOnAfter: (minutes: number) => `Carry on after ${minutes} min`,
  device: "This device",
  hostVersion: (version: string) => `Host ${version}`,

  // shortcuts
  shortcuts: "Shortcuts",
  keyLists: "move in lists",
  keyOpen: "open",
  keyBack: "back",
  keyChoose: "choose an option",
  keyRecommended: "the recommended option",
  keyOwn: "your own words",
  keySend: "send",
  keyTime: "Take time",
  keySkip: "skip",
  keyPage: "previous or next question",
  keyGo: "go to Inbox, go to Sessions",
  keySearch: "search",
  keySheet: "this list",

  // status region: one sentence each
  sayArrived: (n: number) => count(n, "new question", "new questions"),
  sayLeft: (ms: number): string =>
    ms >= 300_000
      ? "Five minutes left to answer in time."
      : ms >= 60_000
        ? "One minute left to answer in time."
        : "Twenty seconds left to answer in time.",
  sayCarriedOn: "The agent carried on. You can still answer.",
  sayElsewhere: "Answered elsewhere. Your text is kept.",
  sayWithdrawn: "The agent no longer needs this.",
  saySent: "Sent.",
  sayQueued: "In the agent's inbox.",
  sayRefused: "Not taken. See the marked question.",
  saySubmitAgain: "The agent had just carried on. Send once more.",
  sayOffline: "Offline. Your text is safe on this device.",
  sayOnline: "Online again.",

  // notifications
  notifyTitle: (agent: string, header: string) =>
    header ? `${starts(agent)} · ${header}` : starts(agent),
  notifyReminder: (text: string) => `Still open: ${text}`,

  listAnd: (parts: string[]) => parts.join(", "),
  linkTo: (host: string) => `(${host})`,
  imageOf: (alt: string, host: string) => `[image: ${alt || host}]`,
};

export type Strings = typeof en;
