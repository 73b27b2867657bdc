package mutant

// Faults of the client module and of the host that runs it.
var clientFaults = []fault{
	{
		name: "a trapped instance is used again", why: "one bad input breaks the checks that follow",
		file: "wasm/bridge/bridge.go",
		old:  "		if err != nil && i != nil {",
		put:  "		if false {",
		in:   "wasm/bridge", tests: []string{"TestFailure"},
	},
	{
		name: "expiry sends the draft", why: "silence submits a selection",
		file: "wasm/client/card/act.go",
		old:  "		sh.Respond(c.Delivery, nil, CodeTimedOut)",
		put:  "		sh.Respond(c.Delivery, c.Draft.Batch(c.Questions), \"\")",
		in:   "wasm/client/machine", tests: []string{"TestExpiryKeepsTheCardAndTheText", "TestHiddenCardStillExpires"},
	},
	{
		name: "closing drops the draft", why: "a person's words go with the panel",
		file: "wasm/client/card/act.go",
		old:  "		c.Hidden, c.Dirty = true, true",
		put:  "		c.Hidden, c.Dirty = true, true\n		clear(c.Draft.Answers)",
		in:   "wasm/client/machine", tests: []string{"TestHidingKeepsTheDraft"},
	},
	{
		name: "a double click sends twice", why: "one press is two submissions",
		file: "wasm/client/card/card.go",
		old:  "return c.Busy == Idle && c.Ended == nil && !c.Queued()",
		put:  "return c.Ended == nil && !c.Queued()",
		in:   "wasm/client/machine", tests: []string{"TestTwoClicksAreOneSubmit"},
	},
	{
		name: "sent again under a new id", why: "a lost response makes two replies of one press",
		file: "wasm/client/card/card.go",
		old:  "	if c.Busy == RPC && c.Call == \"\" {\n",
		put:  "	if c.Busy == RPC && c.Call == \"\" {\n		c.Press.ID = sh.SubmissionID()\n",
		in:   "wasm/client/machine", tests: []string{"TestLostResponseGoesAgainUnderItsID"},
	},
	{
		name: "a submit is lost with its connection", why: "an answer that was sent is forgotten",
		file: "wasm/client/card/card.go",
		old:  "	case c.Press != nil && !c.Press.Late: // sent on a delivery that is over\n		c.send(now, sh)\n",
		put:  "",
		in:   "wasm/client/machine", tests: []string{"TestConnectionLostAfterSubmit"},
	},
	{
		name: "a submit lets go of its claim", why: "the deadline beats an answer on its way",
		file: "wasm/client/card/act.go",
		old:  "	sh.Respond(c.Delivery, c.Press.Batch, \"\")\n",
		put:  "	sh.Respond(c.Delivery, c.Press.Batch, \"\")\n	sh.Abort(c.Claim)\n	c.Claim = \"\"\n",
		in:   "wasm/client/machine", tests: []string{"TestOpenCardAnswersByWaterfall", "TestRefused"},
	},
	{
		name: "edited text goes with its card", why: "a withdrawn question takes a person's words",
		file: "wasm/client/card/card.go",
		old:  "return c.Ended != nil && !c.Mine && c.Edited()",
		put:  "return false",
		in:   "wasm/client/machine", tests: []string{"TestWithdrawnKeepsText"},
	},
	{
		name: "a pasted reply is shown as one", why: "text with a reply's shape passes for a recorded answer",
		file: "wasm/client/transcript/log.go",
		old:  "	if m.Source.Kind == event.SourceReply {",
		put:  "	if _, shaped := readReply(m.Text); shaped {",
		in:   "wasm/client/machine", tests: []string{"TestPastedReplyIsText"},
	},
	{
		name: "an edited card expires", why: "the time runs out under a person's hands",
		file: "shared/deadline/countdown/countdown.go",
		old:  "	case Blank, Counting, Focused, Expired:\n		c.state = Editing",
		put:  "	case Blank, Focused, Expired:\n		c.state = Editing",
		in:   "shared/deadline/countdown", tests: []string{"TestTransitions"},
	},
	{
		name: "a wall step expires", why: "setting the clock ends a question",
		file: "shared/deadline/countdown/countdown.go",
		old:  "	if woke || mono > GapMs {",
		put:  "	if woke || mono >= 0 {",
		in:   "shared/deadline/countdown", tests: []string{"TestTwoClocks"},
	},
}
