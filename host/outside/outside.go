package outside

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// Limits and defaults.
const (
	// HoldDefault is how long a call holds when its client's limit is not
	// known: the shortest one in the field is 60 s, less a margin.
	HoldDefault = 50 * time.Second
	HoldMax     = 10 * time.Minute
	// LeaseFor is how long a holder has to acknowledge what it was handed.
	LeaseFor = 60 * time.Second
	// ResultsMax results of one session are kept until they are acknowledged;
	// beyond that the oldest is forgotten, which the log still has.
	ResultsMax  = 256
	ClaimMax    = 100 // messages of one Claim
	AdmitMax    = 1000
	claimBytes  = 768 << 10 // their encoded size, so that a response fits one frame
	nameMax     = 200       // characters of a key, a holder, a request id, a name
	historyRead = 512       // events read at a time when a session is met again
)

// The codes of this package's errors.
const (
	CodeBadParams   = "BAD_PARAMS"
	CodeUnknownCall = "UNKNOWN_CALL"
)

// Error is a refusal that says what to send instead.
type Error struct{ Code, Field, Message string }

func (e *Error) Error() string { return e.Code + ": " + e.Field + ": " + e.Message }

// Questions is what this package needs of the question service.
type Questions interface {
	Start(r question.Request, callID string, timeout time.Duration, done func(question.Outcome)) (*question.Wait, error)
	Withdraw(ctx context.Context, a *agent.Agent, callID string) (bool, error)
}

// Options of a Service; all but DefaultTimeout are needed.
type Options struct {
	Questions Questions
	Agents    *agent.Registry
	Sessions  *session.Store
	// Header is the request header under which an outside agent's calls are
	// recorded; it offers the timed tool, or nothing would be a question.
	Header         event.RequestHeader
	DefaultTimeout time.Duration // of an ask without one; 0: 120 s
}

// Service serves outside agents.
type Service struct {
	opt  Options
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	rooms map[string]*room
	lines map[<-chan struct{}]bool // connections that carried a hand-over
}

// New makes a service. Close it before the registry.
func New(o Options) *Service {
	if o.DefaultTimeout == 0 {
		o.DefaultTimeout = 120 * time.Second
	}
	s := &Service{opt: o, rooms: map[string]*room{}, lines: map[<-chan struct{}]bool{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends every hold and waits for what is being recorded.
func (s *Service) Close() {
	s.stop()
	s.work.Wait()
}

// Party is who calls, and over what.
type Party struct {
	TokenID string
	Holder  string          // one process of the agent, or empty
	Line    <-chan struct{} // closed when the connection ends; nil without one
	// Written registers what runs once the response to this call was written
	// whole. Nil: nobody can tell, and only Admit acknowledges.
	Written func(func())
}

// Opening is the session an agent wants.
type Opening struct {
	Title, Name, CWD, Key string
	// Existing makes no new session: a hook that only looks for messages must
	// not fill the list with agents that never asked.
	Existing bool
}

// Open gives the session of a key, or a new one.
func (s *Service) Open(ctx context.Context, p Party, o Opening) (sessionID string, err error) {
	for _, f := range []struct {
		name, text string
		need       bool
	}{{"title", o.Title, false}, {"agent.name", o.Name, true}, {"key", o.Key, false}} {
		if err := checkName(f.name, f.text, f.need); err != nil {
			return "", err
		}
	}
	if len(o.CWD) > 4096 {
		return "", &Error{CodeBadParams, "agent.cwd", "is over 4096 bytes: shorten it"}
	}
	if o.Existing {
		id, ok := s.opt.Sessions.FindKey(p.TokenID, o.Key)
		if !ok {
			return "", fmt.Errorf("open a session by its key: %w", session.ErrNoSession)
		}
		return id, nil
	}
	l, _, err := s.opt.Sessions.OpenOrCreate(ctx, event.Header{Title: o.Title, Key: o.Key, Owner: p.TokenID, CWD: o.CWD,
		Agent: &event.Agent{Kind: event.KindExternal, Name: o.Name, CWD: o.CWD}})
	if err != nil {
		return "", fmt.Errorf("open a session: %w", err)
	}
	return l.ID(), nil
}

func checkName(field, text string, need bool) error {
	switch {
	case need && strings.TrimSpace(text) == "":
		return &Error{CodeBadParams, field, "send a name of 1 to " + fmt.Sprint(nameMax) + " characters"}
	case utf8.RuneCountInString(text) > nameMax:
		return &Error{CodeBadParams, field, "is over " + fmt.Sprint(nameMax) + " characters: shorten it"}
	case need && strings.ContainsFunc(text, hidden):
		return &Error{CodeBadParams, field, "holds control characters: leave them out"}
	}
	return nil
}

// hidden is what a name that people read must not hold: it breaks the line or
// turns the text around it.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Wake tells the service that something changed in a session: a reply may wait.
func (s *Service) Wake(sessionID string) {
	s.mu.Lock()
	r := s.rooms[sessionID]
	s.mu.Unlock()
	if r != nil {
		r.wake()
	}
}

// Forget drops what is kept of a deleted session and ends its holds.
func (s *Service) Forget(sessionID string) {
	s.mu.Lock()
	r := s.rooms[sessionID]
	delete(s.rooms, sessionID)
	s.mu.Unlock()
	if r != nil {
		r.wake()
	}
}

// enter checks that the session is the caller's, acknowledges what its holder
// was handed before, and returns the session's room with its live agent.
func (s *Service) enter(ctx context.Context, p Party, sessionID string) (*room, *agent.Agent, error) {
	if err := checkName("holder", p.Holder, false); err != nil {
		return nil, nil, err
	}
	l, err := s.opt.Sessions.Open(ctx, sessionID)
	if err != nil {
		return nil, nil, err
	}
	// Another token's session is as good as none: its existence is not told.
	if h := l.Header(); !h.External() || h.Owner != p.TokenID {
		return nil, nil, fmt.Errorf("session %s: %w", sessionID, session.ErrNoSession)
	}
	a, err := s.opt.Agents.Resume(ctx, sessionID)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.room(ctx, sessionID, a.Log())
	if err != nil {
		return nil, nil, err
	}
	if ids := r.returned(p.Holder); len(ids) > 0 {
		if _, err := r.admit(ctx, a, p.Holder, ids); err != nil {
			return nil, nil, err
		}
	}
	return r, a, nil
}

// room finds a session's room or makes it from the log, once however many ask.
func (s *Service) room(ctx context.Context, sessionID string, l *session.Log) (*room, error) {
	s.mu.Lock()
	r := s.rooms[sessionID]
	if r == nil {
		r = &room{svc: s, id: sessionID, d: newDesk(), loaded: make(chan struct{}), bell: make(chan struct{})}
		s.rooms[sessionID] = r
		s.mu.Unlock()
		if r.err = r.load(l); r.err != nil {
			s.mu.Lock()
			delete(s.rooms, sessionID)
			s.mu.Unlock()
		}
		close(r.loaded)
		return r, r.err
	}
	s.mu.Unlock()
	select {
	case <-r.loaded:
		return r, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carry notes that a connection carries hand-overs, so that its end is seen.
func (s *Service) carry(line <-chan struct{}) {
	if line == nil {
		return
	}
	s.mu.Lock()
	known := s.lines[line]
	s.lines[line] = true
	s.mu.Unlock()
	if known {
		return
	}
	s.work.Go(func() {
		select {
		case <-line:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		delete(s.lines, line)
		rooms := make([]*room, 0, len(s.rooms))
		for _, r := range s.rooms {
			rooms = append(rooms, r)
		}
		s.mu.Unlock()
		for _, r := range rooms {
			r.hangUp(line)
		}
	})
}

// encodeQuestions is a batch in the wire's spelling.
func encodeQuestions(qs []projection.Question) []byte {
	var w value.Writer
	projection.AppendQuestions(&w, qs)
	return w.Bytes()
}
