package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"meanwhile/host/llm"
	"meanwhile/shared/deadline"
)

const (
	maxErrorBody = 16 << 10
	maxErrorText = 400
)

// fail makes an error of this provider.
func (c *Client) fail(kind llm.Kind, err error, message string) *llm.Error {
	return &llm.Error{Kind: kind, Provider: c.cfg.Name, Message: c.clean(message), Err: err}
}

// refused reads a response that is not a stream.
func (c *Client) refused(resp *http.Response) *llm.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := c.fail(kindOf(resp.StatusCode), nil, errorText(body))
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

func kindOf(status int) llm.Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return llm.KindAuth
	case status == http.StatusTooManyRequests:
		return llm.KindRateLimit
	case status == http.StatusRequestTimeout, status >= 500:
		return llm.KindServer
	}
	return llm.KindRequest
}

// isStream reports whether a response is what was asked for. Servers that leave
// the type out, or call it plain text, are believed; JSON and HTML are not.
func isStream(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err != nil || t != "application/json" && t != "text/html"
}

// wireError is the error object of a body or of an event in the stream.
type wireError struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string or a number
}

// inBand turns an error that came as an event into one of ours.
func (c *Client) inBand(raw json.RawMessage, event []byte) *llm.Error {
	var w wireError
	_ = json.Unmarshal(raw, &w) // of another shape: the kind below, and the text as it is
	kind := llm.KindServer
	code := strings.Trim(string(w.Code), `"`)
	if status, err := strconv.Atoi(code); err == nil && status >= 400 {
		kind = kindOf(status)
	} else if all := strings.ToLower(w.Type + " " + code); strings.Contains(all, "rate_limit") {
		kind = llm.KindRateLimit
	} else if strings.Contains(all, "invalid_request") || strings.Contains(all, "context_length") {
		kind = llm.KindRequest
	}
	return c.fail(kind, nil, errorText(event))
}

// errorText takes the message out of an error body.
func errorText(body []byte) string {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return string(body)
	}
	var w wireError
	var s string
	switch {
	case json.Unmarshal(doc.Error, &w) == nil && w.Message != "":
		return w.Message
	case json.Unmarshal(doc.Error, &s) == nil && s != "":
		return s
	case doc.Message != "":
		return doc.Message
	}
	return string(body)
}

// clean makes a provider's text fit for one log line: no key, no control
// characters, not long.
func (c *Client) clean(s string) string {
	if c.cfg.APIKey != "" {
		s = strings.ReplaceAll(s, c.cfg.APIKey, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}

// broken classifies an error of the transport or the body by asking the
// contexts first: what they say is why, what the transport says is only how.
// caller is the context the caller gave, stream the one of the watchdogs.
func (c *Client) broken(caller, stream context.Context, kind llm.Kind, err error) *llm.Error {
	if caller.Err() != nil {
		return c.fail(llm.KindAborted, context.Cause(caller), "cancelled")
	}
	if r := deadline.Of(context.Cause(stream), idleCode); r != nil {
		what := "silent"
		if r.Timeout == c.cfg.Progress {
			what = "without an answer, though connected,"
		}
		return c.fail(llm.KindIdle, r, what+" for "+r.Timeout.String())
	}
	switch {
	case errors.Is(err, errTooLong):
		return c.fail(llm.KindProtocol, err, err.Error())
	case kind == llm.KindCut:
		return c.fail(kind, err, "the stream ended before the model was done")
	}
	return c.fail(kind, err, err.Error())
}

// retryAfter reads what the provider asked for, in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
