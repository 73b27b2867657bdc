package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"

	"meanwhile/shared/projection"
)

// printSafe writes JSON in which every character that could move a terminal, or
// turn its lines around, is an escape: the same document to a program.
func printSafe(out io.Writer, v any) error {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, c := range strings.TrimSuffix(doc.String(), "\n") {
		if unicode.IsPrint(c) {
			safe.WriteRune(c)
			continue
		}
		if high, low := utf16.EncodeRune(c); high != unicode.ReplacementChar {
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		} else {
			fmt.Fprintf(&safe, `\u%04x`, c)
		}
	}
	_, err := fmt.Fprintln(out, safe.String())
	return err
}

// printAnswers writes answers for people: one line for each choice, the words of
// free text, and the question's id before them when there are several.
func printAnswers(out io.Writer, answers []projection.Answer) error {
	var text strings.Builder
	for _, a := range answers {
		if len(answers) > 1 {
			fmt.Fprintf(&text, "%s:\n", clean(a.ID))
		}
		for _, label := range a.Selected {
			fmt.Fprintln(&text, clean(label))
		}
		if a.Custom != nil {
			text.WriteString(cleanLines(*a.Custom) + "\n")
		}
		if a.Skipped() {
			fmt.Fprintln(&text, "(skipped)")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	return strings.Join(lines, "\n")
}

// cleanText is clean for a text that keeps its lines and tabs.
func cleanText(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text)
}

// shellWord makes one word for a shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(clean(s), "'", `'\''`) + "'" }

// readAll reads a file, or standard input for "-", up to a limit.
func readAll(stdin io.Reader, name string, limit int) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > limit:
		return nil, fmt.Errorf("%s: over %d bytes", name, limit)
	}
	return raw, nil
}
