package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"

	"meanwhile/host/jsonrpc"
)

// problem is an error as RFC 9457 has it. Code is for programs, Detail for
// people; Field names what to change, and Fix is in Detail.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"`
}

func (p *problem) Error() string { return p.Code + ": " + p.Detail }

func newProblem(status int, code, field, detail string) *problem {
	return &problem{Type: "urn:meanwhile:problem:" + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Field: field}
}

// statuses of the codes that are not simply a body that cannot be taken.
var statuses = map[string]int{
	"NO_SESSION":           http.StatusNotFound,
	"UNKNOWN_CALL":         http.StatusNotFound,
	"REQUEST_CONFLICT":     http.StatusConflict,
	"REPLY_QUEUED":         http.StatusConflict,
	"SESSION_DAMAGED":      http.StatusConflict,
	"DUPLICATE_WAIT":       http.StatusConflict,
	"CALLER_NOT_LIVE":      http.StatusConflict,
	"ASK_WITHDRAWN":        http.StatusGone,
	"ASK_CANCELLED":        http.StatusGone,
	"ASK_ABORTED":          http.StatusGone,
	"TOOL_OUTCOME_UNKNOWN": http.StatusGone,
	"RESYNC":               http.StatusGone,
	"TOO_LARGE":            http.StatusRequestEntityTooLarge,
	"INBOX_FULL":           http.StatusTooManyRequests,
	"BUSY":                 http.StatusTooManyRequests,
	"TOO_MANY_AGENTS":      http.StatusTooManyRequests,
	"HOST_STOPPING":        http.StatusServiceUnavailable,
	"LAGGED":               http.StatusServiceUnavailable,
	"NO_PROVIDER":          http.StatusServiceUnavailable,
	"VALIDATOR_FAILED":     http.StatusInternalServerError,
	"INTERNAL":             http.StatusInternalServerError,
	"BAD_TOKEN":            http.StatusUnauthorized,
	"MISSING_SCOPE":        http.StatusForbidden,
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// problemOf words an error of the wire.
func problemOf(err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return newProblem(http.StatusInternalServerError, "INTERNAL", "", "the host could not do this; its log says why")
	}
	switch said.Code {
	case jsonrpc.CodeApplication:
		var data struct{ Code, Field string }
		_ = json.Unmarshal(said.Data, &data) // without data the message stands alone
		status, ok := statuses[data.Code]
		if !ok {
			status = http.StatusUnprocessableEntity
		}
		return newProblem(status, data.Code, data.Field, said.Message)
	case jsonrpc.CodeInvalidParams:
		field := ""
		if m := quoted.FindStringSubmatch(said.Message); m != nil {
			field = m[1]
		}
		return newProblem(http.StatusUnprocessableEntity, "BAD_BODY", field, said.Message)
	}
	return newProblem(http.StatusInternalServerError, "INTERNAL", "", said.Message)
}

func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Detail, p.Status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have left
}

// Refuse words a refusal of the gate.
func Refuse(w http.ResponseWriter, status int, reason string) {
	code := "REFUSED"
	switch status {
	case http.StatusUnauthorized:
		code = "BAD_TOKEN"
	case http.StatusForbidden:
		code = "FORBIDDEN"
	case http.StatusMisdirectedRequest:
		code = "WRONG_HOST"
	case http.StatusMethodNotAllowed:
		code = "BAD_METHOD"
	}
	newProblem(status, code, "", reason).write(w)
}
