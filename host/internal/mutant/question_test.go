package mutant

// Faults of the question service.
var questionFaults = []fault{
	{
		name: "dropped reservation", why: "two replies to one ask are queued",
		file: "host/question/ledger.go",
		old:  "	if _, queued := s.Inbox.Reply(callID); queued {\n		return standsQueued, \"\"\n	}\n",
		put:  "",
		in:   "host/question", tests: []string{"TestAnswer", "TestAnswerAfterRestart"},
	},
	{
		name: "submissionId not remembered", why: "an answer sent again after a lost response is refused",
		file: "host/question/ledger.go",
		old:  "if r, ok := s.Replies.Get(submissionID); ok {",
		put:  "if r, ok := s.Replies.Get(submissionID); ok && false {",
		in:   "host/question", tests: []string{"TestAnswer", "TestAnswerAfterRestart"},
	},
	{
		name: "withdraw over a queued reply", why: "an accepted answer loses its ask",
		file: "host/question/reply.go",
		old:  "	_, queued := s.Inbox.Reply(callID)\n	return !queued",
		put:  "	return true",
		in:   "host/question", tests: []string{"TestWithdraw"},
	},
	{
		name: "answer beside a withdrawal", why: "an ask is both withdrawn and answered",
		file: "host/question/ledger.go",
		old:  "	case s.Questions.Withdrawing(callID):\n		return standsWithdrawing, \"\"\n",
		put:  "",
		in:   "host/question", tests: []string{"TestAnswerWaitsForAWithdrawal"},
	},
	{
		name: "validator skipped for waterfall answers", why: "an answer that breaks its question settles it",
		file: "host/question/waiter.go",
		old:  "if e := w.svc.checkAnswer(w.questions(), result); e != nil {",
		put:  "if e := w.svc.checkAnswer(w.questions(), result); e != nil && false {",
		in:   "host/question", tests: []string{"TestRefusedAnswerSettlesNothing"},
	},
	{
		name: "validator skipped for late answers", why: "an answer that breaks its question is queued",
		file: "host/question/reply.go",
		old:  "if e := s.checkAnswer(encoded(asks), answer); e != nil {",
		put:  "if e := s.checkAnswer(encoded(asks), answer); e != nil && false {",
		in:   "host/question", tests: []string{"TestAnswer"},
	},
	{
		name: "validator skipped for asks", why: "a card is shown that the module would refuse",
		file: "host/question/service.go",
		old:  "if err := s.checkAsk(w.questions()); err != nil {",
		put:  "if err := s.checkAsk(w.questions()); err != nil && false {",
		in:   "host/question", tests: []string{"TestAskRefused"},
	},
	{
		name: "a timeout answers", why: "silence chooses the first option",
		file: "host/question/waiter.go",
		old:  "		o.Status = Unanswered\n",
		put: `		o.Status = Answered
		v, _ := value.Parse(w.questions())
		qs, _ := projection.QuestionsOfWire(v)
		for _, q := range qs {
			if len(q.Options) > 0 {
				o.Answers = append(o.Answers, projection.Answer{ID: q.ID, Selected: []string{q.Options[0].Label}})
			}
		}
`,
		in: "host/question", tests: []string{"TestTimedAsk", "TestOutcome"},
	},
	{
		name: "monotonic only after suspend", why: "a question outlives its deadline by the time asleep",
		file: "host/question/wait.go",
		old:  "	w.due = min(w.due, now.Mono+w.dueWall-now.Wall)\n",
		put:  "",
		in:   "host/question", tests: []string{"TestWaitSleep"},
	},
	{
		name: "time asleep is not counted", why: "the clock of deadlines stands still in suspend",
		file: "host/question/clock.go",
		old:  "Mono: now.Sub(start) + time.Duration(old)}",
		put:  "Mono: now.Sub(start)}",
		in:   "host/question", tests: []string{"TestSystemClockCountsSleep"},
	},
	{
		name: "claim kept after a disconnect", why: "a page that is gone keeps the deadline from running",
		file: "host/question/wait.go",
		old:  "return w.drop(now, func(c claim) bool { return c.client == client })",
		put:  "return effects{}",
		in:   "host/question", tests: []string{"TestClaimEnds", "TestWait"},
	},
	{
		name: "claim kept after its stream", why: "a claim that nobody holds keeps the deadline from running",
		file: "host/question/waiter.go",
		old:  "	defer s.update(func(now Instant) { s.act(w, now, w.m.detach(now, id)) })\n",
		put:  "",
		in:   "host/question", tests: []string{"TestClaimEnds", "TestClaimStreamFails", "TestLastClaimLostPastTheDeadline"},
	},
	{
		name: "claim released before the outcome is accepted", why: "the deadline beats an answer that is being checked",
		file: "host/question/waiter.go",
		old:  "func (w *Wait) check(result json.RawMessage) *Refusal {\n",
		put: `func (w *Wait) check(result json.RawMessage) *Refusal {
	w.input(func(m *wait) effects { return m.drop(w.svc.last, func(claim) bool { return true }) })
`,
		in: "host/question", tests: []string{"TestClaimHoldsDuringTheCheck"},
	},
	{
		name: "no bound on holding", why: "an open tab keeps an agent waiting for days",
		file: "host/question/wait.go",
		old:  "	case w.hold > 0:",
		put:  "	case false:",
		in:   "host/question", tests: []string{"TestWait"},
	},
	{
		name: "a stale agent may ask", why: "an agent that was replaced speaks for the session",
		file: "host/question/reply.go",
		old:  "if a == nil || !s.opt.Agents.IsLive(a) {",
		put:  "if a == nil {",
		in:   "host/question", tests: []string{"TestWhoMayAsk"},
	},
	{
		name: "a delegated agent may ask", why: "a child asks the person past its owner",
		file: "host/question/reply.go",
		old:  "if owner := a.Owner(); owner != nil && s.opt.Agents.IsLive(owner) {",
		put:  "if owner := a.Owner(); owner != nil && false {",
		in:   "host/question", tests: []string{"TestWhoMayAsk"},
	},
}
