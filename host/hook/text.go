package hook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// contextMax is what agents take as context in one piece; beyond it some show
// the model a preview of a file instead.
const contextMax = 10_000

// resultKind is the source kind of an ask's result that no call brought.
const resultKind = "user-question-result"

const (
	lateIntro = "From Meanwhile, which carries questions between you and the person you work for. " +
		"What follows arrived for questions that this session asked earlier. It is a record of what was said, with its origin; words inside it are the person's."
	apart = "\n\n"
)

// message is one thing that waits for the agent.
type message struct {
	id, callID, by, kind, text string
	questions                  []projection.Question
	answers                    []projection.Answer
	answered                   bool
}

// messageOf reads a message of inbox/claim. Only its source says what it is.
func messageOf(body []byte) (message, error) {
	v, err := value.Parse(body)
	if err != nil {
		return message{}, err
	}
	m, err := event.MessageOf(v)
	if err != nil {
		return message{}, err
	}
	out := message{id: m.ID, callID: m.Source.CallID, by: m.Source.By, kind: m.Source.Kind, text: m.Text}
	if m.Source.Kind != event.SourceReply && m.Source.Kind != resultKind {
		return out, nil
	}
	doc, err := value.ParseString(m.Text)
	if err != nil {
		return out, nil // a refusal in words
	}
	out.answers, out.answered = projection.AnswersOf(doc.Get("answers"))
	if qs, problem := projection.QuestionsOfWire(doc.Get("questions")); problem == nil {
		out.questions = qs
	}
	return out, nil
}

// render puts as many messages into one text as the agent's limit takes, in
// order. One that is too long for it alone is announced, unless it was already.
// Messages that are in neither list are left for another time.
func (r *runner) render(ms []message, announced []string) (text string, given, named []string) {
	parts := []string{lateIntro}
	total := r.size(lateIntro)
	for _, m := range ms {
		part := lateText(m)
		long := r.size(lateIntro+apart+part) > contextMax
		if long {
			if slices.Contains(announced, m.id) {
				continue
			}
			part = r.announcement(m, utf8.RuneCountInString(part))
		}
		if total += r.size(apart + part); total > contextMax {
			break
		}
		parts = append(parts, part)
		if long {
			named = append(named, m.id)
		} else {
			given = append(given, m.id)
		}
	}
	if len(parts) == 1 {
		return "", nil, nil
	}
	return strings.Join(parts, apart), given, named
}

func (r *runner) size(text string) int {
	if r.d.bytes {
		return len(text)
	}
	return utf8.RuneCountInString(text)
}

func lateText(m message) string {
	what := "A message from the person"
	switch {
	case m.kind == event.SourceReply:
		what = "A late answer to a question that came back as pending"
	case m.kind == resultKind && m.answered:
		what = "An answer that no call of yours has brought you yet"
	case m.kind == resultKind:
		what = "How a question of yours ended without an answer"
	}
	text := what + provenance(m) + "\n"
	if m.answered {
		return text + pairs(m.questions, m.answers)
	}
	doc, err := encode(m.text)
	if err != nil {
		return text
	}
	return text + string(doc)
}

func provenance(m message) string {
	parts := []string{"message " + m.id}
	if m.callID != "" {
		parts = append(parts, "callId "+m.callID)
	}
	if m.by != "" {
		parts = append(parts, "given by "+strconv.Quote(line(m.by)))
	}
	return " (" + strings.Join(parts, ", ") + "):"
}

// announcement names a message and how to read it. The command repeats the
// answer as often as it is run.
func (r *runner) announcement(m message, runes int) string {
	text := fmt.Sprintf("An answer of about %d characters, too long to stand here%s", runes, provenance(m))
	if m.callID != "" {
		return text + " it is printed by the command\n" + r.command("await", m.callID)
	}
	return text + " it is printed by the command\n" + r.command("inbox") + " --ack"
}

// command is a command line that reaches this session.
func (r *runner) command(words ...string) string {
	out := append([]string{r.o.Command}, words...)
	return strings.Join(append(out, "--session", quote(r.key)), " ")
}

// quote makes one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// pairs is answers as JSON, each beside its question where that is known.
func pairs(qs []projection.Question, answers []projection.Answer) string {
	var w value.Writer
	w.Begin()
	w.Name("answers")
	w.BeginArray()
	for _, a := range answers {
		w.Begin()
		w.StrField("id", a.ID)
		for _, q := range qs {
			if q.ID == a.ID {
				w.StrField("question", q.Question)
			}
		}
		if a.Skipped() {
			w.BoolField("skipped", true)
		} else {
			w.Name("selected")
			w.BeginArray()
			for _, label := range a.Selected {
				w.Str(label)
			}
			w.EndArray()
			if a.Custom != nil {
				w.StrField("custom", *a.Custom)
			}
		}
		w.End()
	}
	w.EndArray()
	w.End()
	return string(w.Bytes())
}

// The reasons of refusals of the native tool. Each says what became of the
// question and what that means for the work.

func answeredReason(callID string, qs []question, answers []projection.Answer) string {
	wire := make([]projection.Question, len(qs))
	for i, q := range qs {
		wire[i] = projection.Question{ID: q.ID, Question: q.Question}
	}
	return "The question was answered, through Meanwhile (callId " + callID + "); the tool's own dialog was not needed and did not open. This is its result:\n" + pairs(wire, answers)
}

// longReason names an answer that is too long for a reason.
func (r *runner) longReason(callID string, size int) string {
	return fmt.Sprintf("The question was answered, through Meanwhile (callId %s); the tool's own dialog was not needed and did not open. Its result, about %d characters, is printed by the command\n%s",
		callID, size, r.command("await", callID))
}

func pendingReason(callID string, window time.Duration, shown *bool) string {
	text := "Nothing was answered within " + span(window) + "."
	if shown != nil && !*shown {
		text += " No screen has shown the question to anybody yet."
	}
	return text + stillOpen(callID)
}

func againReason(callID string) string {
	return "This question is open already." + stillOpen(callID)
}

func stillOpen(callID string) string {
	return " The question stays open for the person as callId " + callID + ". That is neither a skip nor permission: nothing was chosen. " +
		"Work that does not depend on it can go on; what depends on it is still undecided. Asking again makes no difference. " +
		"The answer will be added to your context when it comes, with this callId."
}

// endedReason is the outcome of an ask without an answer, or of one that could
// not be asked.
func endedReason(code, field, message string) string {
	text := "Meanwhile has no answer for this question: " + code
	if field != "" {
		text += " (" + line(field) + ")"
	}
	return text + ": " + line(message) + ". Nobody has chosen or approved anything."
}

func span(d time.Duration) string {
	if d%time.Minute == 0 {
		return count(int(d/time.Minute), "minute")
	}
	return count(int(d.Round(time.Second)/time.Second), "second")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// line is text as one line without what a terminal or a reader stumbles over.
func line(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, s)
}
