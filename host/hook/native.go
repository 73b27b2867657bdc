package hook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"meanwhile/shared/projection"
)

// errNotReadable is a native call of a shape that is not known: the agent's own
// dialog is left to it.
var errNotReadable = errors.New("the question tool's input has no shape that is known")

// question is one question in the spelling of userQuestions/ask.
type question struct {
	ID          string   `json:"id"`
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"`
	Options     []option `json:"options,omitempty"`
	MultiSelect bool     `json:"multi_select,omitempty"`
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

type nativeQuestion struct {
	ID       string            `json:"id"`
	Question string            `json:"question"`
	Header   string            `json:"header"`
	Type     string            `json:"type"`
	Options  []json.RawMessage `json:"options"` // objects, or labels alone
	Choices  []json.RawMessage `json:"choices"`
	// Both spellings are in use.
	MultiSelect bool `json:"multiSelect"`
	MultiSnake  bool `json:"multi_select"`
}

// readNative reads the input of a native question tool: a batch (AskUserQuestion
// of Claude Code, request_user_input of Codex, ask_user of Gemini,
// vscode_askQuestions) or one bare question with choices (ask_user of Copilot).
func readNative(input json.RawMessage) ([]question, error) {
	var text string
	if json.Unmarshal(input, &text) == nil { // arguments as the model wrote them
		input = json.RawMessage(text)
	}
	var in struct {
		Questions []nativeQuestion `json:"questions"`
		nativeQuestion
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotReadable, err)
	}
	if in.Questions == nil && in.Question != "" {
		in.Questions = []nativeQuestion{in.nativeQuestion}
	}
	if len(in.Questions) == 0 {
		return nil, errNotReadable
	}
	out := make([]question, 0, len(in.Questions))
	for i, n := range in.Questions {
		q := question{ID: n.ID, Question: n.Question, Header: n.Header, MultiSelect: n.MultiSelect || n.MultiSnake}
		if q.Question == "" {
			return nil, fmt.Errorf("%w: question %d has no text", errNotReadable, i+1)
		}
		if q.ID == "" {
			q.ID = "q" + strconv.Itoa(i+1)
		}
		for _, raw := range append(n.Options, n.Choices...) {
			var o option
			if json.Unmarshal(raw, &o.Label) != nil {
				if err := json.Unmarshal(raw, &o); err != nil {
					return nil, fmt.Errorf("%w: %w", errNotReadable, err)
				}
			}
			q.Options = append(q.Options, o)
		}
		if n.Type == "yesno" && len(q.Options) == 0 { // Gemini
			q.Options = []option{{Label: "Yes"}, {Label: "No"}}
		}
		out = append(out, q)
	}
	return out, nil
}

// hashOf tells batches apart.
func hashOf(qs []question) string {
	doc, err := json.Marshal(qs)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:16])
}

// skippedText is what a skipped question carries where a text must stand. It is
// no label: nobody can take it for a choice.
const skippedText = "(skipped: the person gave no answer to this question)"

// fill puts the answers into the input of AskUserQuestion: by the question's
// text, an array for a multi-select. It fails when two questions have the same
// text, which cannot be told apart there.
func fill(input json.RawMessage, qs []question, answers []projection.Answer) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	byText := map[string]any{}
	for _, q := range qs {
		if _, twice := byText[q.Question]; twice {
			return nil, errors.New("two questions have the same text")
		}
		a, ok := answerTo(q.ID, answers)
		if !ok {
			return nil, fmt.Errorf("the question %q has no answer", q.ID)
		}
		given := append([]string{}, a.Selected...)
		if a.Custom != nil {
			given = append(given, *a.Custom)
		}
		if len(given) == 0 {
			given = append(given, skippedText)
		}
		if q.MultiSelect {
			byText[q.Question] = given
		} else {
			byText[q.Question] = given[0]
		}
	}
	doc, err := encode(byText)
	if err != nil {
		return nil, err
	}
	members["answers"] = doc
	return encode(members)
}

func answerTo(id string, answers []projection.Answer) (projection.Answer, bool) {
	for _, a := range answers {
		if a.ID == id {
			return a, true
		}
	}
	return projection.Answer{}, false
}

// encode is JSON without the escapes that only HTML needs: a model reads it.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
