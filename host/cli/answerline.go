package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"meanwhile/shared/projection"
)

const skipWord = "/skip"

// parseAnswer reads what a person typed for one question. An exact label comes
// first, for a label may look like anything. Where there are no options digits
// are text.
func parseAnswer(q projection.Question, line string) (projection.Answer, error) {
	a := projection.Answer{ID: q.ID, Selected: []string{}}
	words := strings.TrimSpace(line)
	if words == skipWord {
		return a, nil
	}
	if len(q.Options) == 0 {
		if words == "" {
			return a, fmt.Errorf("an empty line is no answer: write one, or %s", skipWord)
		}
		a.Custom = &words
		return a, nil
	}
	for _, o := range q.Options {
		if line == o.Label || words == strings.TrimSpace(o.Label) && words != "" {
			a.Selected = []string{o.Label}
			return a, nil
		}
	}
	numbers, custom, own := strings.Cut(words, "=")
	if custom = strings.TrimSpace(custom); own && custom == "" {
		return a, errors.New("there are no words after =")
	} else if own {
		a.Custom = &custom
	}
	for _, field := range strings.FieldsFunc(numbers, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > len(q.Options) {
			return a, fmt.Errorf("%q is no option: write a number from 1 to %d, = and your own words, or %s", clean(field), len(q.Options), skipWord)
		}
		if label := q.Options[n-1].Label; !slices.Contains(a.Selected, label) {
			a.Selected = append(a.Selected, label)
		}
	}
	switch {
	case len(a.Selected) == 0 && a.Custom == nil:
		return a, fmt.Errorf("an empty line is no answer: write a number from 1 to %d, = and your own words, or %s", len(q.Options), skipWord)
	case !q.Multi() && (len(a.Selected) > 1 || len(a.Selected) == 1 && a.Custom != nil):
		return a, errors.New("only one can be chosen here: a number, or words of your own")
	}
	return a, nil
}

// readLine reads one line of at most inputMax bytes. The terminal gives it whole,
// so an Enter that ends a composition never arrives here. What keys leave behind
// that are no text goes.
func readLine(in *bufio.Reader) (string, error) {
	raw, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("a line over %d bytes", inputMax)
	case err != nil && (len(raw) == 0 || !errors.Is(err, io.EOF)):
		return "", err
	}
	return typedText(string(raw)), nil
}

// typedText takes control characters and the sequences of arrow and function
// keys out of a line.
func typedText(line string) string {
	var out strings.Builder
	const (
		text = iota
		escape
		sequence
	)
	state := text
	for _, c := range strings.ToValidUTF8(line, "") {
		switch {
		case c == '\x1b':
			state = escape
		case state == escape && (c == '[' || c == 'O'):
			state = sequence
		case state == escape:
			state = text
		case state == sequence:
			if c >= 0x40 && c <= 0x7e {
				state = text
			}
		case c == '\t':
			out.WriteRune(' ')
		case !unicode.IsControl(c):
			out.WriteRune(c)
		}
	}
	return out.String()
}

// isTerminal tells whether a person may be typing.
func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// readToken reads the token, unseen where it is typed.
func readToken(cmd *cobra.Command, in *bufio.Reader, typed bool) (string, error) {
	if typed {
		fmt.Fprint(cmd.ErrOrStderr(), "token that may answer: ")
		show := hideTyping(cmd)
		defer show()
	}
	line, err := readLine(in)
	if typed {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	token := strings.TrimSpace(line)
	if err != nil || token == "" {
		return "", errors.New("no token came: type it, or pipe it in as the first line; make one with `meanwhile token create --scope answer --label NAME`")
	}
	return token, nil
}

// hideTyping turns the terminal's echo off until show is called, also by an
// interrupt. A terminal that cannot shows the token.
func hideTyping(cmd *cobra.Command) (show func()) {
	echo := func(mode string) {
		c := exec.Command("stty", mode)
		c.Stdin = cmd.InOrStdin()
		_ = c.Run()
	}
	echo("-echo")
	interrupted := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		select {
		case <-interrupted:
			echo("echo")
			os.Exit(exitFailed)
		case <-done:
		}
	}()
	return func() {
		signal.Stop(interrupted)
		close(done)
		echo("echo")
	}
}
