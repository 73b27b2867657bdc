package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"meanwhile/host/app"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/bridge"
)

// maxDocument bounds a document to check: two encoded batches.
const maxDocument = 2 * projection.BatchMax

func newCheck() *cobra.Command {
	var questions, answer string
	c := &cobra.Command{
		Use:   "check --questions Q.json [--answer A.json]",
		Short: "Have the client module judge questions, or an answer to them",
		Long: "Runs the very module that judges them in the browser and in the host, and prints its verdict.\n" +
			"Q.json is the arguments of an ask_user_question call, or a bare array of questions as the page gets them.\n" +
			"A.json is {\"answers\":[…]}, or the bare array. The exit code is 0 for yes and 3 for no.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if questions == "" {
				return &usageError{errors.New("give --questions")}
			}
			ask, err := readDocument(questions)
			if err != nil {
				return err
			}
			var given []byte
			if answer != "" {
				if given, err = readDocument(answer); err != nil {
					return err
				}
			}
			problem, err := judge(cmd.Context(), ask, given)
			if err != nil {
				return err
			}
			return verdict(cmd.OutOrStdout(), problem)
		},
	}
	c.Flags().StringVar(&questions, "questions", "", "file of the questions")
	c.Flags().StringVar(&answer, "answer", "", "file of the answer")
	return c
}

// readDocument reads one JSON document. What is no JSON is the file's fault and
// not the module's to judge.
func readDocument(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxDocument:
		return nil, fmt.Errorf("%s: the file is over %d bytes", name, maxDocument)
	}
	v, err := value.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v.Bytes(), nil
}

// judge asks the module about the questions, then about the answer.
func judge(ctx context.Context, ask, answer []byte) (*projection.Problem, error) {
	ask, problem := wireQuestions(ask)
	if problem != nil {
		return problem, nil
	}
	module, err := bridge.New(ctx, bridge.Options{CacheDir: app.CacheDir()})
	if err != nil {
		return nil, err
	}
	defer module.Close(ctx)
	problem, err = module.CheckAsk(ctx, ask)
	if err != nil || problem != nil || answer == nil {
		return problem, err
	}
	if answer[0] == '[' {
		answer = append(append([]byte(`{"answers":`), answer...), '}')
	}
	return module.CheckAnswer(ctx, ask, answer)
}

// wireQuestions turns a call's arguments into the questions that a page gets.
func wireQuestions(ask []byte) ([]byte, *projection.Problem) {
	if ask[0] != '{' {
		return ask, nil
	}
	parsed, problem := projection.ParseAsk(string(ask))
	if problem != nil {
		return nil, problem
	}
	var w value.Writer
	projection.AppendQuestions(&w, parsed.Questions)
	return w.Bytes(), nil
}

func verdict(out io.Writer, p *projection.Problem) error {
	if p == nil {
		fmt.Fprintln(out, `{"ok":true}`)
		return nil
	}
	doc, err := json.Marshal(map[string]any{"problem": struct {
		Code    string `json:"code"`
		Field   string `json:"field,omitempty"`
		Message string `json:"message"`
	}{p.Code, p.Field, p.Message}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", doc)
	return errRefused
}
