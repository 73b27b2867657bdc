package remotes

import (
	"encoding/json"
	"errors"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/agent/loop"
	"meanwhile/host/auth"
	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/notify"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/session"
)

// sentinels gives each error that a caller can act on its code on the wire.
func sentinels() []struct {
	err   error
	code  string
	field string
} {
	return []struct {
		err   error
		code  string
		field string
	}{
		{session.ErrNoSession, "NO_SESSION", "sessionId"},
		{session.ErrDamaged, "SESSION_DAMAGED", "sessionId"},
		{session.ErrResync, "RESYNC", "after"},
		{session.ErrForkAt, "BAD_PARAMS", "at"},
		{session.ErrLagged, "LAGGED", ""},
		{session.ErrClosed, "HOST_STOPPING", ""},
		{session.ErrUnknown, "HOST_STOPPING", ""},
		{session.ErrTooLarge, "TOO_LARGE", ""},
		{session.ErrBadTitle, "BAD_TITLE", "title"},
		{agent.ErrClosed, "HOST_STOPPING", ""},
		{agent.ErrTooMany, "TOO_MANY_AGENTS", ""},
		{agent.ErrNotLive, question.CodeNotLive, ""},
		{agent.ErrNothing, "NOTHING_TO_CONTINUE", ""},
		{agent.ErrOutside, "OUTSIDE_SESSION", ""},
		{inbox.ErrFull, "INBOX_FULL", ""},
		{inbox.ErrTooLarge, "TOO_LARGE", "text"},
		{inbox.ErrID, "BAD_MESSAGE_ID", "messageId"},
		{loop.ErrNoModel, "NO_MODEL", ""},
		{question.ErrClosed, "HOST_STOPPING", ""},
		{question.ErrBusy, "BUSY", ""},
		{auth.ErrNoScope, "BAD_SCOPE", "scopes"},
		{auth.ErrAskAnswer, "BAD_SCOPE", "scopes"},
		{auth.ErrBadScope, "BAD_SCOPE", "scopes"},
		{auth.ErrBadLabel, "BAD_LABEL", "label"},
		{auth.ErrNoToken, "NO_TOKEN", "id"},
		{auth.ErrTooManyTokens, "TOO_MANY_TOKENS", ""},
		{notify.ErrBadSubscription, "BAD_SUBSCRIPTION", "endpoint"},
		{notify.ErrTooManyPush, "TOO_MANY_SUBSCRIPTIONS", ""},
	}
}

// Wire turns an owner's error into what is sent, or returns nil for one that
// is none of the caller's business.
func Wire(err error) *jsonrpc.Fault {
	var asked *question.Error
	if errors.As(err, &asked) {
		return fault(asked.Code, asked.Field, asked.Message)
	}
	var refused *gateway.Error
	if errors.As(err, &refused) {
		return fault(refused.Code, refused.Field, refused.Message)
	}
	var told *outside.Error
	if errors.As(err, &told) {
		return fault(told.Code, told.Field, told.Message)
	}
	for _, s := range sentinels() {
		if errors.Is(err, s.err) {
			// The sentinel's own words: what wraps it names operations of ours.
			return fault(s.code, s.field, s.err.Error())
		}
	}
	return nil
}

// fault is a business error.
func fault(code, field, message string) *jsonrpc.Fault {
	data, err := json.Marshal(struct {
		Name  string `json:"name"`
		Code  string `json:"code"`
		Field string `json:"field,omitempty"`
	}{question.ErrorName, code, field})
	if err != nil {
		return nil
	}
	return &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: message, Data: data}
}

// missing names a member that must be there.
func missing(field string) error {
	return jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: missing field %q", field)
}

// need refuses the first empty one of name, value pairs.
func need(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return missing(pairs[i])
		}
	}
	return nil
}
