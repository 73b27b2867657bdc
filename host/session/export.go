package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"meanwhile/shared/event"
)

// lineMax bounds one line of an export; a change is smaller than that.
const lineMax = 8 << 20

// Export writes a log as JSON lines, the header first, up to what is on disk
// when it starts. On a damaged log it writes up to the fault and returns it.
func Export(ctx context.Context, w io.Writer, l *Log) error {
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.Write(append(event.AppendHeader(nil, l.Header()), '\n')) // Flush has the error
	end := l.feed.seq()
	for seq := int64(-1); seq < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		events, err := l.Read(seq, int(min(chunkEvents, end-seq)))
		if err != nil {
			return errors.Join(out.Flush(), fmt.Errorf("export session %s: %w", l.id, err))
		}
		if len(events) == 0 {
			return errors.Join(out.Flush(), &Fault{Session: l.id, Seq: seq + 1, Reason: "missing"})
		}
		for _, e := range events {
			if _, err := out.Write(append(event.AppendEvent(nil, e), '\n')); err != nil {
				return fmt.Errorf("export session %s: %w", l.id, err)
			}
			seq = e.Seq
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export session %s: %w", l.id, err)
	}
	if l.damage != nil {
		return l.damage
	}
	return nil
}

// LineError says which line of an export cannot be read.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Reader reads an export.
type Reader struct {
	lines  *bufio.Scanner
	line   int
	header event.Header
	next   int64
}

// NewReader reads the header line. Errors name the line.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{lines: bufio.NewScanner(r)}
	in.lines.Buffer(make([]byte, 0, 64<<10), lineMax)
	line, err := in.read()
	if errors.Is(err, io.EOF) {
		err = &LineError{1, errors.New("the export is empty: its first line is the header")}
	}
	if err != nil {
		return nil, err
	}
	if in.header, err = event.ParseHeader(line); err != nil {
		return nil, &LineError{in.line, err}
	}
	return in, nil
}

// Header returns the first line.
func (r *Reader) Header() event.Header { return r.header }

// Next returns the next event, io.EOF after the last.
func (r *Reader) Next() (event.Event, error) {
	line, err := r.read()
	if err != nil {
		return event.Event{}, err
	}
	e, err := event.ParseEvent(line)
	if err == nil && e.Seq != r.next {
		err = fmt.Errorf("seq is %d where %d is next", e.Seq, r.next)
	}
	if err != nil {
		return event.Event{}, &LineError{r.line, err}
	}
	r.next++
	return e, nil
}

func (r *Reader) read() ([]byte, error) {
	r.line++
	if r.lines.Scan() {
		return r.lines.Bytes(), nil
	}
	err := r.lines.Err()
	switch {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("longer than %d bytes", lineMax)
	}
	return nil, &LineError{r.line, err}
}
