package file

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"meanwhile/host/tool"
)

type readTool struct{ w *Workspace }

func (readTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "read_file",
		Description: "Reads a text file of the workspace. Each line has its number and a tab before it, which are not part of the file. " +
			fmt.Sprintf("At most %d lines come at once; offset and limit choose others.", linesMax),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"relative to the workspace"},` +
			`"offset":{"type":"integer","minimum":1,"description":"the first line, counted from 1"},` +
			`"limit":{"type":"integer","minimum":1,"description":"how many lines"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

func (t readTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct {
		Path   string `json:"path"`
		Offset *int64 `json:"offset"`
		Limit  *int64 `json:"limit"`
	}
	if err := decode(c.Arguments, &args, `{"path": "…", "offset": 1, "limit": 100}`); err != nil {
		return tool.Result{}, err
	}
	first, limit := int64(1), int64(linesMax)
	if args.Offset != nil {
		first = *args.Offset
	}
	if args.Limit != nil {
		limit = min(*args.Limit, linesMax)
	}
	if first < 1 || limit < 1 {
		return tool.Result{}, refuse(CodeArguments, "offset and limit must be 1 or more; leave them out for the beginning of the file")
	}
	path, err := t.w.local(args.Path)
	if err != nil {
		return tool.Result{}, err
	}
	root, err := t.w.open()
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	b, _, err := readAll(root, path)
	if err != nil {
		return tool.Result{}, err
	}
	if len(b) == 0 {
		return tool.Result{Text: "[the file is empty]"}, nil
	}
	text, last, total := number(string(b), first, limit)
	switch {
	case first > total:
		return tool.Result{}, refuse(CodeArguments, "offset is %d, but the file has %d lines", first, total)
	case first > 1 || last < total:
		text += fmt.Sprintf("[lines %d to %d of %d]", first, last, total)
	}
	return tool.Result{Text: text}, nil
}

// number gives the lines from first on with their numbers, the last of them and
// how many there are.
func number(s string, first, limit int64) (text string, last, total int64) {
	var b strings.Builder
	full := false
	for line := range strings.Lines(s) {
		total++
		if total < first || total >= first+limit || full {
			continue
		}
		line = strings.TrimSuffix(line, "\n")
		if b.Len() > 0 && b.Len()+min(len(line), lineMax) > outputMax {
			full = true
			continue
		}
		if len(line) > lineMax {
			n := lineMax
			for !utf8.RuneStart(line[n]) {
				n--
			}
			line = line[:n] + fmt.Sprintf(" [%d more bytes]", len(line)-n)
		}
		fmt.Fprintf(&b, "%d\t%s\n", total, line)
		last = total
	}
	return b.String(), last, total
}

type writeTool struct{ w *Workspace }

func (writeTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "write_file",
		Description: "Writes a text file of the workspace, whole: what it held before is gone. Missing directories are made. To change part of a file use edit_file.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"relative to the workspace"},` +
			`"content":{"type":"string","description":"the whole content"}},` +
			`"required":["path","content"],"additionalProperties":false}`),
	}
}

func (t writeTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := decode(c.Arguments, &args, `{"path": "…", "content": "…"}`); err != nil {
		return tool.Result{}, err
	}
	path, err := t.w.local(args.Path)
	switch {
	case err != nil:
		return tool.Result{}, err
	case args.Content == nil:
		return tool.Result{}, refuse(CodeArguments, "content is missing; send the whole content, or an empty string for an empty file")
	case len(*args.Content) > writeMax:
		return tool.Result{}, tooLarge(len(*args.Content))
	}
	existed, err := t.w.write(path, *args.Content)
	if err != nil {
		return tool.Result{}, err
	}
	done := "created"
	if existed {
		done = "replaced"
	}
	return tool.Result{Text: fmt.Sprintf("%s %s, %d bytes", done, shown(path), len(*args.Content))}, nil
}

func (w *Workspace) write(path, content string) (existed bool, err error) {
	root, err := w.open()
	if err != nil {
		return false, err
	}
	defer root.Close()
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.replace(root, path, []byte(content))
}

func tooLarge(n int) error {
	return refuse(CodeTooLarge, "the file would have %d bytes, at most %d; write it in parts with bash", n, writeMax)
}

type editTool struct{ w *Workspace }

func (editTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "edit_file",
		Description: "Replaces text in a text file of the workspace. old must occur exactly once, with every space and line break as in the file and without line numbers: " +
			"take in as much around it as makes it unique. With all, every occurrence is replaced.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"relative to the workspace"},` +
			`"old":{"type":"string","description":"the text to replace"},` +
			`"new":{"type":"string","description":"what stands there afterwards; may be empty"},` +
			`"all":{"type":"boolean","description":"replace every occurrence"}},` +
			`"required":["path","old","new"],"additionalProperties":false}`),
	}
}

func (t editTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct {
		Path string  `json:"path"`
		Old  string  `json:"old"`
		New  *string `json:"new"`
		All  bool    `json:"all"`
	}
	if err := decode(c.Arguments, &args, `{"path": "…", "old": "…", "new": "…"}`); err != nil {
		return tool.Result{}, err
	}
	path, err := t.w.local(args.Path)
	switch {
	case err != nil:
		return tool.Result{}, err
	case args.New == nil:
		return tool.Result{}, refuse(CodeArguments, "new is missing; send an empty string to delete the text")
	case args.Old == "":
		return tool.Result{}, refuse(CodeArguments, "old is empty; to make a new file use write_file")
	case args.Old == *args.New:
		return tool.Result{}, refuse(CodeArguments, "old and new are the same; nothing was changed")
	}
	n, err := t.w.edit(path, args.Old, *args.New, args.All)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("replaced %s in %s", times(n), shown(path))}, nil
}

func (w *Workspace) edit(path, old, new string, all bool) (count int, err error) {
	root, err := w.open()
	if err != nil {
		return 0, err
	}
	defer root.Close()
	w.writing.Lock()
	defer w.writing.Unlock()
	b, _, err := readAll(root, path)
	if err != nil {
		return 0, err
	}
	text := string(b)
	count = strings.Count(text, old)
	// Of "aa" in "aaa" it is not said which, though Count finds one.
	once := strings.LastIndex(text, old) == strings.Index(text, old)
	switch {
	case count == 0:
		return 0, refuse(CodeMatch, "old does not occur in %s%s; read the file and send the text as it is there", shown(path), hint(text, old))
	case !once && !all:
		return 0, refuse(CodeMatch, "old occurs more than once in %s; take in more of what stands around it, or set all", shown(path))
	}
	if size := len(text) + count*(len(new)-len(old)); size > writeMax {
		return 0, tooLarge(size)
	}
	_, err = w.replace(root, path, []byte(strings.ReplaceAll(text, old, new)))
	return count, err
}

// hint tells a near miss.
func hint(text, old string) string {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	switch {
	case strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), strings.ReplaceAll(old, "\r\n", "\n")):
		return ", whose lines end in \\r\\n"
	case squeeze(old) != "" && strings.Contains(squeeze(text), squeeze(old)):
		return " with these spaces and line breaks"
	}
	return ""
}

// decode reads arguments strictly, with errors the model can act on.
func decode(raw string, into any, form string) error {
	d := json.NewDecoder(strings.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return refuse(CodeArguments, "arguments: %v: send %s", err, form)
	}
	if _, err := d.Token(); err != io.EOF {
		return refuse(CodeArguments, "there is text after the arguments; send one JSON object: %s", form)
	}
	return nil
}

func times(n int) string {
	if n == 1 {
		return "1 occurrence"
	}
	return fmt.Sprintf("%d occurrences", n)
}
