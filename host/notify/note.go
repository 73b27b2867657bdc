package notify

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"
	"unicode"
)

// Kind is what a note tells.
type Kind string

// The kinds.
const (
	Arrived   Kind = "arrived"
	Reminder  Kind = "reminder"
	Continued Kind = "continued" // the agent carried on; an answer still reaches it
	Settled   Kind = "settled"   // nothing is left to do
	Test      Kind = "test"      // a person tries the target
)

const (
	headMax   = 300            // characters of a text that is sent along
	blockLife = 24 * time.Hour // how long a note without a deadline is of use
)

// Note is one thing to say about one ask. Header, Text and Send are empty
// unless text may leave the host.
type Note struct {
	Kind Kind
	Tag  string // the ask, in at most 32 characters of base64url
	Key  string // what the page calls the card

	SessionID, CallID, EventID string

	Agent      string
	Header     string
	Text       string // the head of the first question
	Count      int    // questions
	QuestionID string // with Send
	Send       string // label of the recommended or first option of the only question, if one may be chosen
	By         string // who settled it, if a client did

	Link     string
	Deadline time.Time // zero: none
	Until    time.Time // of no use after that
	At       time.Time

	// recovered: it was announced before a restart, so a target may have shown it.
	recovered bool
}

// Title is the line above.
func (n Note) Title() string {
	agent := n.Agent
	if agent == "" {
		agent = "Agent"
	}
	switch {
	case n.Kind == Test:
		return "Meanwhile"
	case n.Header != "":
		return agent + " · " + n.Header
	}
	return agent
}

// Body is the line below.
func (n Note) Body() string {
	text := n.Text
	if text == "" {
		text = "1 question"
		if n.Count > 1 {
			text = strconv.Itoa(n.Count) + " questions"
		}
	}
	switch n.Kind {
	case Test:
		return "Notifications reach you here."
	case Reminder:
		return "Still open: " + text
	case Continued:
		return "Carried on, you can still answer: " + text
	case Settled:
		if n.By != "" {
			return "Answered by " + n.By
		}
		return "Nothing left to do"
	}
	return text
}

// tagOf names the ask of a call. It gives nothing of either away.
func tagOf(sessionID, id string) string {
	sum := sha256.Sum256([]byte(sessionID + "\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// head is the beginning of a text in one line, without invisible characters.
func head(text string, limit int) string {
	var out []rune
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = len(out) > 0
			continue
		case !unicode.IsPrint(r):
			continue
		}
		if space {
			out = append(out, ' ')
			space = false
		}
		if len(out) >= limit {
			return string(out[:limit]) + "…"
		}
		out = append(out, r)
	}
	return string(out)
}
