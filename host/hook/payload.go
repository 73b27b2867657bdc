package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// payloadMax is the largest payload that is read. A tool's response is part of
// it, so it must hold a large file; a larger payload is no occasion to hand
// anything over, and the next one is.
const payloadMax = 8 << 20

// drainMax is how much of a payload that is too large is still taken from the
// agent, which might take a closed pipe for a failure.
const drainMax = 256 << 20

// payload is what an agent says of the moment. Fields that a dialect does not
// send are empty. None but the session and the event is needed.
type payload struct {
	Session string
	Event   string
	CWD     string
	Tool    string
	Input   json.RawMessage
	CallID  string // the native call's
	Active  bool   // the agent goes on because a stop hook said so
	Loops   int    // the same, counted (Cursor)
	Status  string // how the turn ended (Cursor)
	Helper  bool   // a helper of the agent, with its session
	Stamped bool   // has a timestamp, and no transcript
	Cursor  bool   // Cursor says so
	Camel   bool   // the older spelling of Copilot
}

// wirePayload takes both spellings in use.
type wirePayload struct {
	SessionID      string          `json:"session_id"`
	SessionIDCamel string          `json:"sessionId"`
	Conversation   string          `json:"conversation_id"`
	Event          string          `json:"hook_event_name"`
	EventCamel     string          `json:"hookEventName"`
	CWD            string          `json:"cwd"`
	Roots          []string        `json:"workspace_roots"`
	Tool           string          `json:"tool_name"`
	ToolCamel      string          `json:"toolName"`
	Input          json.RawMessage `json:"tool_input"`
	InputCamel     json.RawMessage `json:"toolArgs"`
	CallID         string          `json:"tool_use_id"`
	CallIDCamel    string          `json:"toolUseId"`
	Active         bool            `json:"stop_hook_active"`
	Loops          int             `json:"loop_count"`
	Status         string          `json:"status"`
	AgentID        string          `json:"agent_id"`
	Timestamp      json.RawMessage `json:"timestamp"`
	Transcript     string          `json:"transcript_path"`
	CursorVersion  string          `json:"cursor_version"`
}

func readPayload(in io.Reader) (payload, error) {
	raw, err := io.ReadAll(io.LimitReader(in, payloadMax+1))
	if err != nil {
		return payload{}, fmt.Errorf("read the payload: %w", err)
	}
	if len(raw) > payloadMax {
		_, _ = io.Copy(io.Discard, io.LimitReader(in, drainMax)) // only to be polite
		return payload{}, fmt.Errorf("the payload is over %d bytes", payloadMax)
	}
	var w wirePayload
	if err := json.Unmarshal(raw, &w); err != nil {
		return payload{}, fmt.Errorf("the payload is no JSON of the known shape: %w", err)
	}
	p := payload{
		Session: first(w.SessionID, w.SessionIDCamel, w.Conversation), Event: first(w.Event, w.EventCamel), CWD: w.CWD,
		Tool: first(w.Tool, w.ToolCamel), CallID: first(w.CallID, w.CallIDCamel), Input: w.Input,
		Active: w.Active || w.Loops > 0, Loops: w.Loops, Status: w.Status, Helper: w.AgentID != "",
		Stamped: w.Timestamp != nil && w.Transcript == "", Cursor: w.CursorVersion != "" || w.Conversation != "",
		Camel: w.SessionID == "" && w.SessionIDCamel != "",
	}
	if p.Input == nil {
		p.Input = w.InputCamel
	}
	if p.CWD == "" && len(w.Roots) > 0 {
		p.CWD = w.Roots[0]
	}
	switch {
	case p.Event == "":
		return p, errors.New("the payload names no event")
	case p.Session == "":
		return p, errors.New("the payload names no session")
	case !filepath.IsAbs(p.CWD):
		p.CWD = "" // it is only shown
	}
	return p, nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
