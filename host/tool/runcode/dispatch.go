package runcode

import (
	"context"
	"errors"
	"fmt"

	"meanwhile/host/agent"
	"meanwhile/host/agent/loop"
	"meanwhile/host/internal/id"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// errOver: the program's own call has its result already, so nothing that it
// did may be recorded any more.
var errOver = errors.New("the call of the program is over")

// answer is one call that has come back.
type answer struct {
	ref        string // the prelude's
	isError    bool
	text       string
	name, code string // of an error
	err        error  // ends the program: the log takes no more
}

// begin starts a call that the program made. What cannot be a call is refused
// and not recorded.
func (p *program) begin(ref, name, arguments string) error {
	if p.made >= callsMax {
		return refuse(CodeTooMany, "a program may make %d calls: return what you have, and go on with another program", callsMax)
	}
	if len(arguments) > argumentsMax {
		return refuse(CodeArguments, "the arguments of %s have %d bytes, at most %d", name, len(arguments), argumentsMax)
	}
	v, err := value.ParseString(arguments)
	if err != nil || v.Kind() != value.Object {
		return refuse(CodeArguments, "call tools.%s with one object", name)
	}
	p.made++
	p.open++
	object := string(v.Append(nil))
	p.working.Go(func() {
		a := p.dispatch(p.calls, name, object)
		a.ref = ref
		p.finished <- a // it has room for every call
	})
	return nil
}

// dispatch runs one call and returns when its event is on disk.
func (p *program) dispatch(ctx context.Context, name, arguments string) answer {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return answer{isError: true} // it did not run, and nobody waits for it
	}
	t, log := p.tool, p.tool.agent.Log()
	call := tool.Call{SessionID: p.call.SessionID, CallID: unused(log), Name: name, Arguments: arguments, Turn: p.call.Turn, Step: p.call.Step}
	out := loop.RunTool(ctx, t.tools, call, t.cfg.Log)
	if errors.Is(context.Cause(p.turn), agent.ErrStopping) {
		return answer{err: context.Cause(p.turn)}
	}
	commit, err := log.Update(func(s *session.State) ([]event.Draft, error) {
		if !p.unanswered(s) {
			return nil, errOver
		}
		return []event.Draft{event.PTCDispatch{
			RootCallID: p.call.CallID, ParentCallID: p.call.CallID, SubCallID: call.CallID,
			Name: name, Arguments: []byte(arguments), IsError: out.IsError, Text: out.Text,
		}.Draft()}, nil
	})
	if err == nil {
		err = commit.Wait(ctx)
	}
	if err != nil {
		return answer{err: fmt.Errorf("record call %s of a program: %w", call.CallID, err)}
	}
	return answer{isError: out.IsError, text: out.Text, name: out.Name, code: out.Code}
}

// unused draws an id that the log does not know.
func unused(log *session.Log) string {
	for {
		fresh, known := id.New(), false
		log.View(func(s *session.State) { known = s.Used(fresh) })
		if !known {
			return fresh
		}
	}
}

// unanswered reports whether the program's own call still waits for its result.
func (p *program) unanswered(s *session.State) bool {
	for _, c := range s.Calls {
		if c.CallID == p.call.CallID {
			return true
		}
	}
	return false
}
