package mutant

// Faults of the log and its disk.
var storeFaults = []fault{
	{
		name: "sync off", why: "a power cut takes acknowledged answers",
		file: "host/session/logstore/open.go",
		old:  "&opt.WriteOptions{Sync: true}",
		put:  "&opt.WriteOptions{}",
		in:   "host/session/logstore", tests: []string{"TestEveryWriteFails", "TestPowerCut"},
	},
	{
		name: "no directory sync", why: "a power cut takes a whole journal by its name",
		file: "host/session/logstore/storage.go",
		old: `	if err := s.sync(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil`,
		put: "	return w, nil",
		in:  "host/session/logstore", tests: []string{"TestEveryWriteFails", "TestPowerCut"},
	},
	{
		name: "success before the write", why: "an answer is accepted that a failing disk never had",
		file: "host/session/logstore/group.go",
		old: `		err := g.write(batch)
		if err != nil {
			g.fail(err)
		}
		for _, e := range batch {
			e.done(err)
		}
`,
		put: `		for _, e := range batch {
			e.done(nil)
		}
		err := g.write(batch)
		if err != nil {
			g.fail(err)
		}
`,
		in: "host/session/logstore", tests: []string{"TestEveryWriteFails", "TestPowerCut"},
	},
	{
		name: "acknowledged before the commit", why: "a crash takes what somebody was told is safe",
		file: "host/session/log.go",
		old: `	default:
	}
	select {
	case <-c.land.done:`,
		put: `	default:
		return nil
	}
	select {
	case <-c.land.done:`,
		in: "host/session", tests: []string{"TestDurableOnly", "TestEveryWriteFails"},
	},
	{
		name: "a failed write is a success", why: "the process goes on over a disk that lost a batch",
		file: "host/session/log.go",
		old:  `land.err = l.store.failed("session "+l.id, err)`,
		put:  `_ = l.store.failed("session "+l.id, err)`,
		in:   "host/session", tests: []string{"TestEveryWriteFails"},
	},
	{
		name: "a batch in two", why: "a crash between the halves leaves half a change",
		file: "host/session/log.go",
		old: `	c.land = l.write(b, item)
	return c, nil`,
		put: `	if len(raws) > 1 {
		l.write(Batch{Session: l.id, First: b.First, Events: raws[:1]}, nil)
		b.First, b.Events = b.First+1, raws[1:]
	}
	c.land = l.write(b, item)
	return c, nil`,
		in: "host/session", tests: []string{"TestCrashBetweenWrites", "TestSimulation"},
	},
	{
		name: "told before it is on disk", why: "a client shows what a crash then takes back",
		file: "host/session/log.go",
		old:  "	l.store.backend.Write(b, func(err error) {",
		put: `	if item != nil {
		l.feed.deliver(*item)
		item = nil
	}
	l.store.backend.Write(b, func(err error) {`,
		in: "host/session", tests: []string{"TestFollowDurableOnly"},
	},
	{
		name: "checkpoint trusted over the log", why: "a stale cache shows other questions than the log",
		file: "host/session/load.go",
		old:  "if err != nil || len(raws) != 1 || sumOf(raws[0]) != s.lastSum {",
		put:  "if err != nil || len(raws) != 1 {",
		in:   "host/session", tests: []string{"TestCheckpoint"},
	},
	{
		name: "a lost tail goes unnoticed", why: "a log that lost its end is taken as whole",
		file: "host/session/load.go",
		old:  "case len(raws) == 0 && s.Next != end:",
		put:  "case false:",
		in:   "host/session", tests: []string{"TestDamage"},
	},
	{
		name: "repair skipped", why: "after a crash a call stays open for ever",
		file: "host/session/repair.go",
		old:  "		if s.Balanced() {",
		put:  "		if true {",
		in:   "host/session", tests: []string{"TestRepair"},
	},
	{
		name: "repair writes twice", why: "a call that has its result gets a second, unknown one",
		file: "host/session/balance.go",
		old:  "			b.Calls = append(b.Calls[:i:i], b.Calls[i+1:]...)\n",
		put:  "",
		in:   "host/session", tests: []string{"TestBalance", "TestRepair"},
	},
	{
		name: "a fork inherits questions", why: "a fork shows its parent's questions and takes their answers",
		file: "shared/projection/userquestions.go",
		old:  "	if e.Seq < q.inherited {\n		return \"\"\n	}\n",
		put:  "",
		in:   "shared/projection", tests: []string{"TestVectors", "TestUserQuestionsClauses"},
	},
	{
		name: "text taken as a reply", why: "an ordinary message settles an ask",
		file: "shared/projection/userquestions.go",
		old:  `if src.Get("kind").Text() != event.SourceReply || !q.active.drop(id) {`,
		put:  `if !q.active.drop(id) {`,
		in:   "shared/projection", tests: []string{"TestVectors", "TestUserQuestionsClauses"},
	},
	{
		name: "a deadline settles the ask", why: "pending is taken as the end, and the late answer refused",
		file: "shared/projection/userquestions.go",
		old:  `if body.Get("pending").True() || code == event.CodeOutcomeUnknown {`,
		put:  `if code == event.CodeOutcomeUnknown {`,
		in:   "shared/projection", tests: []string{"TestVectors", "TestUserQuestionsClauses"},
	},
}
