package replay

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/template"

	"meanwhile/host/llm"
)

const (
	maxScript = 1 << 20
	maxRules  = 1000
	maxSteps  = 100
)

type script struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	When when   `json:"when"`
	Do   []step `json:"do"`
}

type when struct {
	Last     string   `json:"last,omitempty"`
	Source   string   `json:"source,omitempty"`
	Reply    *bool    `json:"reply,omitempty"`
	Tool     string   `json:"tool,omitempty"`
	Pending  *bool    `json:"pending,omitempty"`
	Failed   *bool    `json:"failed,omitempty"`
	Contains string   `json:"contains,omitempty"`
	Matches  string   `json:"matches,omitempty"`
	Called   []string `json:"called,omitempty"`
	Uncalled []string `json:"uncalled,omitempty"`
	Earlier  string   `json:"earlier,omitempty"`

	matches *regexp.Regexp
}

type step struct {
	Text      string           `json:"text,omitempty"`
	Reasoning string           `json:"reasoning,omitempty"`
	PaceMs    int              `json:"paceMs,omitempty"`
	WaitMs    int              `json:"waitMs,omitempty"`
	Call      string           `json:"call,omitempty"`
	ID        string           `json:"id,omitempty"`
	Arguments any              `json:"arguments,omitempty"`
	Error     llm.Kind         `json:"error,omitempty"`
	Finish    llm.FinishReason `json:"finish,omitempty"`
}

//go:embed demo.json
var demo []byte

// Demo is the built-in script: a timed question, work meanwhile, and the late
// answer read.
func Demo() (*Model, error) { return Parse(demo) }

// Load reads a script from a file.
func Load(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model script: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("model script: %w", err)
	}
	m, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Parse checks a script whole: a mistake in a rule that is never reached is
// found too.
func Parse(b []byte) (*Model, error) {
	if len(b) > maxScript {
		return nil, fmt.Errorf("model script: over %d bytes", maxScript)
	}
	var s script
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("model script: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("model script: text after the script")
	}
	if len(s.Rules) == 0 || len(s.Rules) > maxRules {
		return nil, fmt.Errorf("model script: %d rules; write 1 to %d", len(s.Rules), maxRules)
	}
	if s.Name == "" {
		s.Name = "script"
	}
	for i := range s.Rules {
		if err := s.Rules[i].check(); err != nil {
			return nil, fmt.Errorf("model script: rule %d: %w", i+1, err)
		}
	}
	return &Model{script: s}, nil
}

func (r *rule) check() (err error) {
	switch r.When.Last {
	case "", "user", "tool":
	default:
		return fmt.Errorf("last is %q; write user or tool", r.When.Last)
	}
	if r.When.matches, err = regexp.Compile(r.When.Matches); err != nil {
		return fmt.Errorf("matches: %w", err)
	}
	if len(r.Do) == 0 || len(r.Do) > maxSteps {
		return fmt.Errorf("%d steps in do; write 1 to %d", len(r.Do), maxSteps)
	}
	for i, s := range r.Do {
		if err := s.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if (s.Finish != "" || s.Error != "") && i != len(r.Do)-1 {
			return fmt.Errorf("step %d: finish and error come last", i+1)
		}
	}
	return nil
}

func (s step) check() error {
	does := 0
	for _, set := range []bool{s.Text != "", s.Reasoning != "", s.Call != "", s.Error != "", s.Finish != ""} {
		if set {
			does++
		}
	}
	switch {
	case does > 1:
		return errors.New("does two things; write two steps")
	case does == 0 && s.WaitMs == 0:
		return errors.New("does nothing; write text, reasoning, call, waitMs, error or finish")
	case s.WaitMs < 0 || s.PaceMs < 0:
		return errors.New("waitMs and paceMs must not be negative")
	case s.Call == "" && (s.Arguments != nil || s.ID != ""):
		return errors.New("arguments and id belong to a call")
	}
	switch s.Finish {
	case "", llm.FinishStop, llm.FinishToolCalls, llm.FinishMaxTokens, llm.FinishBlocked:
	default:
		return fmt.Errorf("finish is %q; write stop, tool-calls, max-tokens or blocked", s.Finish)
	}
	if s.Error != "" && !strings.HasPrefix(string(s.Error), "LLM_") {
		return fmt.Errorf("error is %q; write a kind such as LLM_SERVER", s.Error)
	}
	v := view{}
	for _, text := range []string{s.Text, s.Reasoning} {
		if _, err := v.parse(text); err != nil {
			return err
		}
	}
	_, err := v.expand(s.Arguments, func(text string) (string, error) {
		_, err := v.parse(text)
		return text, err
	})
	return err
}

// parse reads a template with the functions of a view.
func (v *view) parse(text string) (*template.Template, error) {
	return template.New("").Option("missingkey=error").Funcs(v.funcs()).Parse(text)
}

// fill expands one template.
func (v *view) fill(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := v.parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, nil)
	return b.String(), err
}

// expand rebuilds a JSON value with f applied to its strings.
func (v *view) expand(value any, f func(string) (string, error)) (any, error) {
	switch x := value.(type) {
	case string:
		return f(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			var err error
			if out[i], err = v.expand(e, f); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			var err error
			if out[k], err = v.expand(e, f); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}
