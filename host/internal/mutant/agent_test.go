package mutant

// Faults of agents, inside and outside, and of their tools.
var agentFaults = []fault{
	{
		name: "an admitted message stays queued", why: "the agent reads one answer twice",
		file: "host/agent/inbox/inbox.go",
		old:  "	for end := len(places); end > 0; {",
		put:  "	for end := 0; end > 0; {",
		in:   "host/agent/inbox", tests: []string{"TestAdmission", "TestNothingIsLostOrDoubled"},
	},
	{
		name: "a lease never ends", why: "a reply handed to a process that died is never handed out again",
		file: "host/agent/inbox/lease.go",
		old:  "	if ok && !now.Before(h.until) {",
		put:  "	if ok && h.until.IsZero() {",
		in:   "host/agent/inbox", tests: []string{"TestLeases"},
	},
	{
		name: "acknowledged before it is written", why: "a reply whose response was cut counts as read",
		file: "host/outside/room.go",
		old: `		p.Written(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.d.wrote(l, ids)
		})`,
		put: `		r.mu.Lock()
		defer r.mu.Unlock()
		r.d.wrote(l, ids)`,
		in: "host/outside", tests: []string{"TestHandOverAndAcknowledgement", "TestUnacknowledgedResultsAreHandedOverAgain"},
	},
	{
		name: "another token's session", why: "one agent reads the answers given to another",
		file: "host/outside/outside.go",
		old:  "!h.External() || h.Owner != p.TokenID {",
		put:  "!h.External() {",
		in:   "host/outside", tests: []string{"TestAnotherTokensSessionIsNone"},
	},
	{
		name: "an answer for nobody is only a result", why: "an agent that hung up never hears the answer",
		file: "host/outside/ask.go",
		old:  "	case o.Status == question.Answered && held:",
		put:  "	case o.Status == question.Answered && (held || true):",
		in:   "host/outside", tests: []string{"TestAnswerInTheWindowWithoutAHoldIsOneBatch"},
	},
	{
		name: "a request id for other questions", why: "an agent gets the answer to a question that it did not ask",
		file: "host/outside/room.go",
		old:  "		if k.questions != questions {",
		put:  "		if false {",
		in:   "host/outside", tests: []string{"TestSameRequestIsTheSameAsk"},
	},
	{
		name: "a step admits nothing", why: "a late answer waits until the agent is idle",
		file: "host/agent/loop/run.go",
		old:  "		if !e.Last {\n			admissions = inbox.AdmitStep(s.Inbox, nil)\n		}\n",
		put:  "		_ = e.Last\n",
		in:   "host/agent/loop", tests: []string{"TestSteerWhileAToolRuns"},
	},
	{
		name: "comments keep a stream alive for ever", why: "a provider that only sends comments holds the agent",
		file: "host/llm/chat/client.go",
		old:  "newEvents(resp.Body, s.idle.Pulse)",
		put:  "newEvents(resp.Body, func() { s.idle.Pulse(); s.progress.Pulse() })",
		in:   "host/llm/chat", tests: []string{"TestIdle"},
	},
	{
		name: "the watchdog counts the consumer's time", why: "a slow tool ends the model's stream",
		file: "shared/deadline/watchdog.go",
		old:  "	w.busy = false\n	w.stop()\n",
		put:  "	w.busy = false\n",
		in:   "shared/deadline", tests: []string{"TestWatchdogCountsOnlyOutstandingDemand"},
	},
	{
		name: "a killed command leaves its escaped children", why: "what left the process group runs on after the timeout",
		file: "host/tool/bash/family_linux.go",
		old:  "(p.group == f.leader || p.marked || !groupOnly && in[p.parent])",
		put:  "(p.group == f.leader)",
		in:   "host/tool/bash", tests: []string{"TestFamilyEnds"},
	},
}
