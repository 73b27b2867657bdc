package agent

import (
	"fmt"

	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Header is a request/header without its reason, in the form that it is
// recorded and compared in: the schemas of its tools are rewritten without
// white space.
func Header(provider, model, system string, specs []tool.Spec) (event.RequestHeader, error) {
	h := event.RequestHeader{Provider: provider, Model: model, System: system}
	for _, s := range specs {
		parameters, err := value.Parse(s.Parameters)
		if err != nil {
			return h, fmt.Errorf("tool %s: its parameters are not a JSON document: %w", s.Name, err)
		}
		h.Tools = append(h.Tools, event.ToolSpec{Name: s.Name, Description: s.Description, Parameters: parameters.Bytes()})
	}
	return h, nil
}

// HeaderDraft is the request/header that must be recorded before a request
// under want goes out, and false when the last one says the same. A fork
// inherits none. fresh says that this process has not sent a request for the
// session yet.
func HeaderDraft(s *session.State, want event.RequestHeader, fresh bool) (event.Draft, bool) {
	switch last, err := event.DecodeRequestHeader(s.Request); {
	case s.Request == nil:
		want.Reason = event.HeaderInitial
	case err == nil && last.Same(want):
		return event.Draft{}, false
	case fresh:
		want.Reason = event.HeaderResume
	default:
		want.Reason = event.HeaderChange
	}
	return want.Draft(), true
}
