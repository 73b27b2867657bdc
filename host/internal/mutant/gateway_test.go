package mutant

// Faults of the gateway and its socket.
var gatewayFaults = []fault{
	{
		name: "no first-wins check", why: "a second answer settles an ask again",
		file: "host/gateway/event.go",
		old:  "if took = p.phase != ended; !took {",
		put:  "if took = true; !took {",
		in:   "host/gateway", tests: []string{"TestWire", "TestSettleRace"},
	},
	{
		name: "nobody is told of a disconnect", why: "a page that is gone keeps its claim",
		file: "host/gateway/client.go",
		old:  "	for _, p := range left {\n		p.ev.Left(c.id)\n	}\n",
		put:  "	_ = left\n",
		in:   "host/gateway", tests: []string{"TestWire", "TestSettleRace"},
	},
	{
		name: "one client delegates for all", why: "one person's refusal takes the question from everyone",
		file: "host/gateway/event.go",
		old:  "last = !slices.ContainsFunc(s.clients, func(other *client) bool { return other.mayAnswer(p) })",
		put:  "last = true",
		in:   "host/gateway", tests: []string{"TestWire"},
	},
	{
		name: "any error settles", why: "a client's own failure ends the ask as a person's decision",
		file: "host/gateway/event.go",
		old:  `case code != "" && slices.Contains(p.ev.Codes, code):`,
		put:  `case code != "":`,
		in:   "host/gateway", tests: []string{"TestWire"},
	},
	{
		name: "a refused answer counts", why: "what the check refused settles the ask",
		file: "host/gateway/event.go",
		old:  "if refused := p.ev.Check(who.Result); refused != nil {",
		put:  "if refused := p.ev.Check(who.Result); refused != nil && false {",
		in:   "host/gateway", tests: []string{"TestWire"},
	},
	{
		name: "scope check off", why: "an ask token answers its own questions",
		file: "host/gateway/route.go",
		old:  "	case !c.Scopes.Has(r.scope):",
		put:  "	case false:",
		in:   "host/gateway", tests: []string{"TestWire", "TestPostLimits"},
	},
	{
		name: "remote/settle without the event's scope", why: "a token that never saw a question answers it",
		file: "host/gateway/client.go",
		old:  "	if !caller.Scopes.Has(p.ev.Scope) {",
		put:  "	if false {",
		in:   "host/gateway", tests: []string{"TestSettleNeedsTheEventsScope"},
	},
	{
		name: "everyone gets every event", why: "questions are shown to tokens that may only read",
		file: "host/gateway/state.go",
		old:  "return p.seq <= c.passed && c.caller.Scopes.Has(p.ev.Scope)",
		put:  "return p.seq <= c.passed",
		in:   "host/gateway", tests: []string{"TestWire"},
	},
	{
		name: "a slow client is kept", why: "a client that does not read grows the host without bound",
		file: "host/gateway/event.go",
		old:  "case c.queuedSettlements() >= g.cfg.MaxLag:",
		put:  "case false:",
		in:   "host/gateway", tests: []string{"TestClientTooFarBehindIsClosed"},
	},
	{
		name: "compression on", why: "a secret beside a stranger's text can be guessed by length, and a small frame can be a bomb",
		file: "host/gateway/wsconn/wsconn.go",
		old:  "Subprotocols: []string{Subprotocol}, CheckOrigin: check,",
		put:  "Subprotocols: []string{Subprotocol}, CheckOrigin: check, EnableCompression: true,",
		in:   "host/gateway/wsconn", tests: []string{"TestCompressionIsNotNegotiated"},
	},
	{
		name: "default origin check", why: "a forgotten check lets in whoever sends no Origin",
		file: "host/gateway/wsconn/wsconn.go",
		old:  "check = func(*http.Request) bool { return false }",
		put:  "check = nil",
		in:   "host/gateway/wsconn", tests: []string{"TestRefusedUpgrades"},
	},
	{
		name: "a member twice", why: "two readers of one message see two answers",
		file: "host/jsonrpc/scan.go",
		old:  "				if bytes.Equal(n, name) {",
		put:  "				if bytes.Equal(n, nil) {",
		in:   "host/jsonrpc", tests: []string{"TestWire", "TestUnmarshal"},
	},
}
