// Command client is the client module: cards, countdowns, unsent answers, submit races, the checks of asks
// and answers, and the view models. It is built once (wasip1 reactor) and the same bytes run in the page, in
// the extension and in the host.
//
// It owns what a person sees of asks and sessions and what may be sent for them. It does not own sockets,
// storage, timers, the DOM, words in any language, or the session admin calls (create, send, cancel, continue,
// fork, rename, archive, delete): the page makes those by itself. The machine is pure: the same inputs at the
// same times give the same effects and views, byte for byte. One owner calls it, one call at a time.
//
// # Driver contract (version 1)
//
// Everything is UTF-8 JSON. Absent and false, absent and 0, absent and "" are the same unless said otherwise;
// optional members are left out. Members the reader does not know are to be ignored in views and effects; in
// inputs they are ignored too. Text must be well-formed Unicode: a lone surrogate (String.toWellFormed) is BAD_INPUT. Times: wall is Unix ms, mono is a monotonic clock in ms from any origin
// (performance.now), both whole numbers.
//
// # Exports
//
//	abi() i32                            1
//	alloc(n i32) i32                     address of the one input buffer, at least n bytes (n ≤ 16 MiB, else 0)
//	step(wall i64, mono i64, ptr, len)   one input document → step document
//	view(wall i64, mono i64, ptr, len)   {"view":…} → view document; changes nothing
//	check(ptr, len)                      validation, see below; stateless
//	fold(ptr, len)                       projection over JSON lines, see below; stateless
//
// The four calls return u64 = ptr<<32|len of the answer, valid until the next call. Views of memory detach when
// memory grows: take them again after every call. A failed call answers {"error":{"code","message"}}:
// BAD_INPUT and TOO_LARGE changed nothing and the instance is good; TRAP means the instance must be thrown
// away: make a new one, send "init" again with what storage holds, then "up".
//
// # Step document
//
//	{"effects":[…], "dirty":["cards","card:KEY","sessions","transcript:SID",…], "next":MONO}
//
// Driver loop: call step; carry out every effect in order; fetch the views that are dirty and shown; arm one
// timer for next (absent: none; it is sliced, so it may come early for no visible reason) that sends
// {"type":"tick"}. A timer that fires late is fine: the machine looks at the clocks it is given.
//
// # Inputs: {"type":…}
//
//	init      {tab, nonce, stored:{key:value,…}, storage?:"memory", settings?, visible?:bool}
//	          first, once. tab: id of this tab, kept over reloads, no other open tab's · nonce: 32 random hex digits,
//	          new at each load · stored: every localStorage item whose key starts with "mw/" · storage "memory":
//	          there is none · visible: the page is visible and focused (absent: true)
//	settings  {carryOnMs?, notify?:bool}   whole value. carryOnMs: an edited, untouched card starts counting
//	          again after that long (absent: never)
//	up        {clientId, scopes:[…], protocol, sha256, build:{sha256, reload:bool}}
//	          a connection is initialised. protocol, sha256 as the host said; build: this module's bytes, and
//	          whether this page can get another build by reloading (page true, extension false)
//	down      {}   the connection is gone; every call, stream and delivery on it is over (no result/error inputs
//	          follow for them, but calls by post go on)
//	stopped   {code}   4400 or 4401: no further attempt will be made
//	request   {id, method, params}   the host called us: only "user-questions/request". id: any string the page
//	          can answer by, unique per connection
//	cancel    {id}   the host cancelled that call ($/cancelRequest); do not answer it afterwards
//	notify    {method, params}   "remote/settled", "remote/synced"; others are ignored
//	result    {id, result}      our call or stream ended well
//	error     {id, error:{code?, message?, data?:{code?, field?}}}   it failed. Use code -32001 for a POST the
//	          network refused
//	item      {id, value}       one item of our stream; {chunk,more} parts are joined by the page first
//	follow    {sessionId}       show this session: its events are streamed and its transcript view exists
//	unfollow  {sessionId}
//	window    {visible:bool}    false on window blur or a hidden page: counts as blur of the card in focus
//	stored    {key, value|null} another tab changed this item (storage event)
//	storage   {failed:bool}     a store effect threw (true), or works again (false)
//	fold      {sessionId, key, open:bool}   a disclosure of a transcript
//	tick      {}
//	act       {key, act, …}     the person did something on a card; key from the cards view
//
// act is one of
//
//	focus, blur               of the card's answer surface (focusin/focusout of its form, not of one control)
//	select  {q, o, pointer?}  choose option o (index) of question q; for a multi-select: toggle it. A single-select
//	                          choice clears the custom text and goes to the next question; it never submits
//	custom  {q, text}         the whole text of "own words" as it stands. Over 60000 characters a submit is
//	                          refused; over 240000 it is cut
//	skip    {q, on:bool, pointer?}   skip the question, or take the skip back; skipping goes to the next question
//	page    {to, pointer?}    show question index to
//	submit  {pointer?}        send; with an unanswered question it goes there instead
//	wait                      "Take time"
//	hide                      put a keyed card away (nothing is sent, the countdown runs on); no-op when unkeyed
//	open                      bring it back to the front
//	close                     unkeyed: rejects with ASK_CANCELLED. keyed: same as hide
//	approve                   plan card: sends the approve label
//	changes                   plan card: sends the custom text of the question, ASK_CANCELLED when it is blank
//	cancelReply               queued card: takes the reply out of the agent's inbox
//	dismiss                   ended card: forget it and its text
//	seen                      the row was looked at (clears unread)
//	delegate                  open card with a channel: hand it to the next answerer
//
// pointer:true marks a click or tap; those within 400 ms of a page change are ignored. An act that does not fit
// the card's state, or names no card, does nothing.
//
// # Effects: {"do":…}
//
//	call      {id, method, params, post?:true}   make the call; answer with result or error. post: over
//	          POST /rpc, because the socket is down; without a token for that: error
//	stream    {id, method, params}   same, items come as item inputs
//	abort     {id}                   cancel our call or stream ($/cancelRequest); no input is expected for it
//	respond   {id, result} or {id, error:{code,message,data}}   answer to a request input
//	store     {key, value}           localStorage.setItem
//	remove    {key}
//	announce  {code, key?, n?}       polite status line: arrived (n cards), left (n ms: 300000, 60000, 20000),
//	          carried-on, answered-elsewhere, withdrawn, sent, queued, refused, submit-again, offline, online
//	notify    {key, kind:"arrived"|"reminder"}   system notification with tag = key, if the person allows it; only
//	          sent while the page is not visible, or the card not on show
//	unnotify  {key}                  take it back
//	reveal    {key}                  bring the card's row or panel into view and focus what "focus" says in its view
//	reload    {}                     another build is on the host, all drafts are stored: location.reload()
//
// The machine itself opens host/follow after "up", session/follow for followed sessions (with after when it can
// resume, without it after RESYNC), and a claim per delivery. Ids of calls and streams are the machine's.
//
// # Views: view({"view":"cards"}) and so on
//
// cards: the list, in display order.
//
//	{conn:"up"|"down"|"stopped", stop?:4400|4401, known:bool (the first session list has come),
//	 storage:"local"|"memory", build?:"other" (a reload waits for edits to end), needs, late, queued, ended: counts, over?,
//	 cards:[Row]}
//	Row {key, group:"needs"|"late"|"queued"|"ended"|"answered", sessionId, callId?, title?, agent?, status?,
//	     note?, archived?, header?, text (first question, one line, ≤ 200 characters), n (questions), plan?, blocking?,
//	     countdown:Countdown, busy?, hint?, edited?, unread?, hidden?, since (wall ms), carriedAt? (wall ms: this page
//	     saw it carried on), ended?:Ended}
//
// title, agent, status, note and archived are the session list's values as the host sent them. Group "answered" holds the last 50 asks that
// went while this page was open.
//
// card: {"view":"card","key":K} → the whole card, or {} when there is none.
//
//	{…Row, eventId?,
//	 state:"open"|"continued"|"queued"|"ended"|"answered",
//	 channel:"ready"|"none"|"rpc"   open: the waterfall is here or not · continued: "rpc" when connected
//	 submit:bool                    the send button works (channel there, not busy, editable)
//	 locked?:bool                   controls are disabled: busy, queued or ended
//	 focus?:bool                    the card may take focus when the person opens it (ready, no countdown, unlocked)
//	 busy?:"sent"|"resend"|"rpc"|"settling"   sent by waterfall · lost and waiting to go again · RPC under way ·
//	                                settled by another client, the record is not here yet
//	 hint?:{code, field?, error?, message?}   submit-again · not-accepted · discarded · reply-queued · failed
//	                                (error: the code) · unanswered (field "q") · in-inbox (queued)
//	 refused?:{code, field, message, q?:index, part?:"selected"|"custom"}   what the check found wrong
//	 page, restored?:bool, storage?:"memory", messageId? (queued),
//	 plan?:{q:0, detail, approve (label), other?(label)},
//	 questions:[{id, question, header?, detail?, multi?, options:[{label, description?, recommended?}],
//	            selected:[option indexes], custom?, skipped?, answered?}],
//	 ended?:Ended}
//	Countdown {state:"none"|"counting"|"focused"|"editing"|"waiting"|"continued", remainingMs?, totalMs?, warn?}
//	          remainingMs is right at the time given to view; it falls only in "counting". "none": no deadline (blocking),
//	          or not known yet. warn: under 60 s or 20 %. At zero the machine sends ASK_TIMED_OUT and the card stays,
//	          "counting" with 0, until the record says continued
//	Ended {reason:"answered"|"answered-elsewhere"|"withdrawn"|"cancelled"|"aborted"|"closed"|"session-gone",
//	       code?, by?, byName?, at (wall ms), answers?:[{id, selected, custom?}] (what was recorded)}
//
// Text and labels in ended cards are the person's own draft: copy and "send as a message" use questions[].
// An ended card found in storage after a reload has questions with text cut to 200 characters and its chosen labels as
// options.
//
// sessions: {known, sessions:[{id, title?, agent?, status?, note?, archived?, seq, at (wall ms of the last change), open,
// late, queued (counts), followed?}]}, newest activity first.
//
// transcript: {"view":"transcript","sessionId":S,"since":REV} → what changed after REV (absent or 0: all).
//
//	{sessionId, rev, state:"loading"|"live"|"stale"|"gone"|"error", error?, header?, title?, total, base, reset?:bool,
//	 turns:[Turn]}
//	total: turns known; base: index of the first one kept (older ones were dropped). reset: forget everything first
//	Turn {i, rev, turn? (number; absent: messages before a turn), state:"running"|"completed"|"aborted"|"error"|
//	      "max-tokens"|"blocked"|"interrupted", at, message? (of an error), rows:[Node]}
//	Node {k, …}, in display order; what a closed disclosure hides is left out:
//	  user       {seq, id, at, source (object as recorded), text}
//	  turn       {key, open, steps, n, tools, replies}    the turn's own disclosure, in front of what it controls
//	  group      {key, open, n, tools, replies}           disclosure of a run of process content, inside the turn
//	  reasoning  {text, in}                               in: key of the disclosure that holds the node
//	  text       {text, in?, interrupted?}                assistant text; the turn's last one is outside the disclosure
//	  preview    {text}                                   unfinished text
//	  tool       {callId, name, state:"running"|"done"|"error"|"interrupted", args, result?, code?, in}
//	  ask        {callId, ask, n, of, code?, actions:[…], key?, in}
//	  reply      {seq, id, callId, by?, at, pairs:[{question, header?, selected, custom?}], in} or {…, raw}
//
// ask is waiting, pending, queued, answered, cancelled, interrupted, withdrawn, closed (nobody answered), error (the
// agent's mistake; code), or ambiguous (a count and no panel). actions: open (act open on key), answer (act open on key), view (record view), cancel (act cancelReply
// on key). args and result are cut to 4000 characters.
//
// record: {"view":"record","sessionId","callId"} → read-only panel {sessionId, callId, state:"answered"|"queued",
// questions:[as in card, selected and custom are the recorded answers]}, or {}.
//
// # check and fold
//
//	check {"check":"ask","questions":[…],"timed"?:bool} or {"check":"answer","questions":[…],"answer":{"answers":[…]}}
//	→ {"ok":true} or {"problem":{code, field?, message}}
//	fold: first line {"view":"userQuestions"|"inbox"|"replies"}, then the header line, then one event per line
//	→ {"view":…, "seq":last (-1 in an empty log)} or {"problem":{code:"DAMAGED", message}}
//
// # Storage
//
// One item per card and tab, "mw/draft/CARDKEY/TAB", a versioned document; a tab writes and removes only its own, but for
// "dismiss", which removes the item the person dismissed, and items a week old whose card is gone.
//
// # Limits
//
// Input 16 MiB, depth 64 · 1000 cards (a request beyond that is answered with CLIENT_FULL, which settles nothing, and a listed ask
// waits for room; the cards view counts both as over) · 8
// followed sessions (the oldest is dropped) · 2000 turns, 20000 nodes and 8 MiB of text kept per transcript · 200
// stored items, 50 answered rows, 5000 listed sessions.
package main

// main never runs: the module is a reactor, and only its exports are called.
func main() {}
