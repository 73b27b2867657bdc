package mutant

// Faults of tokens and of the HTTP door.
var doorFaults = []fault{
	{
		name: "Host check off", why: "a page that rebinds its name to this machine talks to the host",
		file: "host/auth/gate.go",
		old:  "	if !g.hostAllowed(r.Host) {",
		put:  "	if false {",
		in:   "host/auth", tests: []string{"TestGate"},
	},
	{
		name: "Origin check off", why: "any page in the browser talks to the host",
		file: "host/auth/gate.go",
		old:  "if err := g.checkOrigin(r, need, hasBearer); err != nil {",
		put:  "if err := g.checkOrigin(r, need, hasBearer); err != nil && false {",
		in:   "host/auth", tests: []string{"TestGate"},
	},
	{
		name: "an Origin without its port", why: "another program on this machine is taken as the page",
		file: "host/auth/gate.go",
		old:  "return originName == name && portOf(originPort, u.Scheme) == portOf(port, u.Scheme)",
		put:  "_, _ = originPort, port\n	return originName == name",
		in:   "host/auth", tests: []string{"TestGate"},
	},
	{
		name: "tokens compared by an empty prefix", why: "who knows a token's id, which is no secret, holds its rights",
		file: "host/auth/token.go",
		old:  "subtle.ConstantTimeCompare(got[:], want[:]) == 1",
		put:  "subtle.ConstantTimeCompare(got[:0], want[:0]) == 1",
		in:   "host/auth", tests: []string{"TestVerifyRefuses"},
	},
	{
		name: "tokens compared by one byte", why: "one guess in 256 is good",
		file: "host/auth/token.go",
		old:  "subtle.ConstantTimeCompare(got[:], want[:]) == 1",
		put:  "subtle.ConstantTimeCompare(got[:1], want[:1]) == 1",
		in:   "host/auth", tests: []string{"TestVerifyRefuses"},
	},
	{
		name: "ask and answer in one token", why: "an agent answers its own questions",
		file: "host/auth/scope.go",
		old:  "	case s.Has(Ask) && s.Has(Answer):",
		put:  "	case false:",
		in:   "host/auth", tests: []string{"TestScopes"},
	},
	{
		name: "admin implies every scope", why: "the local socket of an agent answers its questions",
		file: "host/auth/scope.go",
		old:  "return s&Scopes(scope) != 0",
		put:  "return s&Scopes(scope|Admin) != 0",
		in:   "host/auth", tests: []string{"TestScopes"},
	},
	{
		name: "a login link is good again", why: "whoever finds a used link logs in",
		file: "host/auth/code.go",
		old:  "	c.codes = append(c.codes[:found], c.codes[found+1:]...)\n",
		put:  "",
		in:   "host/auth", tests: []string{"TestCodeIsGoodOnce"},
	},
	{
		name: "a revoked token keeps its connection", why: "a lost phone goes on answering",
		file: "host/gateway/gateway.go",
		old:  "				drop = append(drop, conn)",
		put:  "				_ = append(drop, conn)",
		in:   "host/gateway", tests: []string{"TestWire"},
	},
	{
		name: "web_fetch reaches private addresses", why: "a page's text makes the agent read the metadata of the cloud",
		file: "host/tool/webfetch/guard.go",
		old:  "	if err != nil || !public(a) {",
		put:  "	if err != nil || !a.IsValid() {",
		in:   "host/tool/webfetch", tests: []string{"TestControl", "TestNameThatChanges"},
	},
}
