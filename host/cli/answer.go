package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	// settleWithin is how long the host may take to say what became of an answer.
	settleWithin = 30 * time.Second
	// An ask whose window just ended needs a moment until it takes late answers.
	lateTries = 20
	lateEvery = 100 * time.Millisecond
	inputMax  = 4 * projection.CustomMax // bytes of one typed line
)

func newAnswer() *cobra.Command {
	c := &cobra.Command{
		Use:   "answer SESSION CALL",
		Short: "Answer a question in the terminal",
		Long: "Shows an open question and sends what is typed. It needs a token that may answer: it is typed in, or is\n" +
			"the first line of standard input, with one line for each question after it. The socket of the host gives\n" +
			"no such right, for an agent that runs commands could answer itself.\n\n" +
			"A line is the number of an option (several, apart by spaces, where more than one may be chosen), or an\n" +
			"option's exact label, or = and your own words, or /skip. Without options the line is the answer.\n" +
			"While the command runs, the question's window stands still. Nothing that is not sent counts. A terminal\n" +
			"takes some 4000 bytes a line; pipe a longer answer in.\n\n" +
			"Exit codes: 0 the answer was taken · 1 it failed, nothing was sent · 2 wrong command line ·\n" +
			"5 somebody else answered, or the question is gone: your answer is printed and not lost.",
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := dataDir(cmd)
			if err != nil {
				return err
			}
			in := bufio.NewReaderSize(cmd.InOrStdin(), inputMax)
			typed := isTerminal(cmd.InOrStdin())
			token, err := readToken(cmd, in, typed)
			if err != nil {
				return err
			}
			a := &answerer{cmd: cmd, data: data, in: in, typed: typed, session: args[0], call: args[1], wire: newAnswerWire(args[0], args[1])}
			return a.run(cmd.Context(), token)
		},
	}
	hostFlags(c)
	return c
}

// answerer answers one ask for one person.
type answerer struct {
	cmd           *cobra.Command
	data          string
	in            *bufio.Reader
	typed         bool // by a person, at a terminal
	session, call string
	wire          *answerWire
	conn          *jsonrpc.Conn
	clientID      string
}

func (a *answerer) tell(format string, args ...any) {
	fmt.Fprintf(a.cmd.ErrOrStderr(), format+"\n", args...)
}

func (a *answerer) run(ctx context.Context, token string) error {
	conn, hello, err := dialAs(ctx, a.data, token, a.wire)
	if err != nil {
		return err
	}
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "done")
	if !slices.Contains(hello.Scopes, "answer") {
		return errors.New("this token may not answer: make one with `meanwhile token create --scope answer --label NAME`")
	}
	a.conn, a.clientID = conn, hello.ClientID
	if !a.wire.wait(ctx, settleWithin, a.wire.complete) {
		return errors.New("the host did not say which questions are open")
	}
	d := a.wire.delivery()
	var questions []projection.Question
	if d != nil {
		questions = d.questions
		defer a.claim(ctx, d)()
	} else if questions, err = a.continued(ctx); err != nil {
		return err
	}
	return a.fill(ctx, d, questions)
}

// fill asks the person and sends, again where the host refused something.
func (a *answerer) fill(ctx context.Context, d *delivery, questions []projection.Question) error {
	for {
		answers, err := a.prompt(questions)
		if err != nil {
			return err
		}
		problem, err := a.send(ctx, d, answers)
		if err != nil || problem == "" {
			return err
		}
		a.tell("not taken: %s", clean(problem))
		if !a.typed {
			return errors.New("the answer was refused; the question is still open")
		}
		if next := a.wire.delivery(); next != nil {
			d = next
		}
	}
}

// claim keeps the window of an open ask from ending while the person types.
func (a *answerer) claim(ctx context.Context, d *delivery) (release func()) {
	if !d.timed {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Without a claim the host's own deadline stands: an answer can be late.
		_ = a.conn.Stream(ctx, "userQuestions/attachWait", map[string]string{"sessionId": a.session, "callId": a.call},
			func(json.RawMessage) error { return nil })
	}()
	return func() { cancel(); <-done }
}

// continued looks for an ask that nobody holds a call for any more. Reading is
// what the socket allows by itself.
func (a *answerer) continued(ctx context.Context) ([]projection.Question, error) {
	conn, err := dial(ctx, a.data)
	if err != nil {
		return nil, err
	}
	defer conn.Wait()
	defer conn.Close(jsonrpc.CloseNormal, "done")
	var first struct {
		Projections struct {
			UserQuestions struct {
				Active []struct {
					CallID    string          `json:"callId"`
					State     string          `json:"state"`
					Questions json.RawMessage `json:"questions"`
				} `json:"active"`
				Settled []struct {
					CallID string `json:"callId"`
				} `json:"settled"`
			} `json:"userQuestions"`
		} `json:"projections"`
	}
	err = conn.Stream(ctx, "session/follow", map[string]any{"sessionId": a.session}, func(item json.RawMessage) error {
		if err := json.Unmarshal(item, &first); err != nil {
			return err
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return nil, plainError(err)
	}
	for _, e := range first.Projections.UserQuestions.Active {
		if e.CallID != a.call {
			continue
		}
		doc, err := value.Parse(e.Questions)
		if err != nil {
			return nil, fmt.Errorf("the questions of the host: %w", err)
		}
		qs, problem := projection.QuestionsOfWire(doc)
		if problem != nil {
			return nil, problem
		}
		return qs, nil
	}
	for _, e := range first.Projections.UserQuestions.Settled {
		if e.CallID == a.call {
			a.tell("this question was answered already")
			return nil, codeError(exitEnded)
		}
	}
	a.tell("the session has no open question of that name")
	return nil, codeError(exitEnded)
}

// send gives the answers to the host by the road that is open. problem is what
// the host refused; the ask is still open then.
func (a *answerer) send(ctx context.Context, d *delivery, answers []projection.Answer) (problem string, err error) {
	var w value.Writer
	w.Begin()
	w.Name("answers")
	projection.AppendAnswers(&w, answers)
	w.End()
	doc := json.RawMessage(w.Bytes())
	if d == nil {
		return a.sendLate(ctx, doc, 1)
	}
	d.reply <- doc
	if !a.wire.wait(ctx, settleWithin, func() bool { return a.wire.settled[d.eventID].Kind != "" || a.wire.refusedAfter(d) }) {
		return "", a.kept(doc, "the host did not say whether it took the answer")
	}
	if refused := a.wire.refusal(d); refused != "" {
		return refused, nil
	}
	end := a.wire.end(d.eventID)
	switch {
	case end.Kind == "result" && end.By == a.clientID:
		a.tell("answered")
		return "", nil
	case end.Kind == "result":
		who := "somebody else"
		if end.ByName != "" {
			who = clean(end.ByName)
		}
		a.tell("%s answered first", who)
		return "", a.lost(doc)
	case end.Kind == "rejected" && end.Code == "ASK_TIMED_OUT":
		a.tell("the agent has gone on meanwhile; the answer goes as a late one")
		return a.sendLate(ctx, doc, lateTries)
	}
	a.tell("the question was taken back")
	return "", a.lost(doc)
}

func (a *answerer) sendLate(ctx context.Context, doc json.RawMessage, tries int) (problem string, err error) {
	// One press, one submission: sent again it is the same.
	params := map[string]any{"sessionId": a.session, "callId": a.call, "answer": doc, "submissionId": id.New()}
	for n := 1; ; n++ {
		var got struct {
			Accepted bool   `json:"accepted"`
			State    string `json:"state"`
		}
		err := a.conn.Call(ctx, "userQuestions/answer", params, &got)
		var refused *jsonrpc.Error
		switch {
		case errors.As(err, &refused):
			return a.refusedLate(doc, err)
		case err != nil:
			return "", a.kept(doc, err.Error())
		case got.Accepted:
			a.tell("taken; the agent gets it with its next step")
			return "", nil
		case n == tries:
			a.tell("the question is not open any more")
			return "", a.lost(doc)
		}
		time.Sleep(lateEvery)
	}
}

// refusedLate: only what is wrong with the answer itself can be mended here.
func (a *answerer) refusedLate(doc json.RawMessage, err error) (problem string, _ error) {
	text := plainError(err).Error()
	switch {
	case strings.HasPrefix(text, projection.CodeBadAnswer):
		return text, nil
	case strings.HasPrefix(text, "REPLY_QUEUED"):
		a.tell("%s", text)
		return "", a.lost(doc)
	}
	return "", a.kept(doc, text)
}

// lost prints an answer that came too late for its question.
func (a *answerer) lost(doc json.RawMessage) error {
	a.tell("your answer, unsent:")
	if err := printSafe(a.cmd.OutOrStdout(), doc); err != nil {
		return err
	}
	return codeError(exitEnded)
}

// kept prints an answer of which it is not known whether it arrived.
func (a *answerer) kept(doc json.RawMessage, why string) error {
	a.tell("%s; your answer:", clean(why))
	if err := printSafe(a.cmd.OutOrStdout(), doc); err != nil {
		return err
	}
	return codeError(exitFailed)
}

// prompt asks each question in turn.
func (a *answerer) prompt(questions []projection.Question) ([]projection.Answer, error) {
	var answers []projection.Answer
	for i, q := range questions {
		a.show(q, i+1, len(questions))
		for {
			if a.typed {
				fmt.Fprint(a.cmd.ErrOrStderr(), "> ")
			}
			line, err := readLine(a.in)
			if err != nil {
				return nil, fmt.Errorf("the input ended before every question was answered, and nothing was sent: %w", err)
			}
			answer, err := parseAnswer(q, line)
			if err == nil {
				answers = append(answers, answer)
				break
			}
			if !a.typed {
				return nil, fmt.Errorf("%s: %w; nothing was sent", clean(q.ID), err)
			}
			a.tell("%v", err)
		}
	}
	if !a.typed {
		return answers, nil
	}
	fmt.Fprint(a.cmd.ErrOrStderr(), "send this? write yes: ")
	line, err := readLine(a.in)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if strings.TrimSpace(line) != "yes" {
		return nil, errors.New("nothing was sent; the question is still open")
	}
	return answers, nil
}

// show writes a question as plain lines. Nothing in it can move the terminal.
func (a *answerer) show(q projection.Question, n, of int) {
	if of > 1 {
		a.tell("Question %d of %d", n, of)
	}
	if q.Header != nil {
		a.tell("%s", clean(*q.Header))
	}
	a.tell("%s", cleanLines(q.Question))
	if q.Detail != nil {
		a.tell("%s", cleanLines(*q.Detail))
	}
	for i, o := range q.Options {
		a.tell("  %d  %s", i+1, clean(o.Label))
		if o.Description != nil {
			a.tell("     %s", clean(*o.Description))
		}
	}
	switch {
	case len(q.Options) == 0:
		a.tell("Your answer, or /skip:")
	case q.Multi():
		a.tell("Numbers, and = before words of your own, or /skip:")
	default:
		a.tell("A number, or = and your own words, or /skip:")
	}
}
