package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	maxLine  = 1 << 20
	maxEvent = 4 << 20
)

var errTooLong = errors.New("an event over the limit")

// events reads server-sent events. Only data matters here; event names, ids
// and retry hints are skipped.
type events struct {
	r     *bufio.Reader
	pulse func() // called for every line that is not the end of an event
	line  []byte
	first bool // no line was read yet
	cr    bool // the last line ended in CR: an LF that follows belongs to it
}

func newEvents(body io.Reader, pulse func()) *events {
	return &events{r: bufio.NewReaderSize(body, 16<<10), pulse: pulse, first: true}
}

// next returns the data of the next event that has any. At the end of the body
// it is io.EOF, also when an event was begun: an event without its empty line
// is a torso and is dropped, as the format demands.
func (e *events) next() ([]byte, error) {
	var data []byte
	has := false
	for {
		line, err := e.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if has {
				return data, nil
			}
			e.pulse()
			continue
		}
		e.pulse()
		value, ok := dataField(line)
		if !ok {
			continue
		}
		if has {
			data = append(data, '\n')
		}
		has = true
		if data = append(data, value...); len(data) > maxEvent {
			return nil, errTooLong
		}
	}
}

// dataField returns the value of a data line. A line that begins with a colon
// is a comment.
func dataField(line []byte) ([]byte, bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return nil, false
	}
	return bytes.TrimPrefix(value, []byte(" ")), true
}

// readLine reads one line ended by LF, CR or CRLF. A CR ends its line at once
// and does not wait for the byte behind it.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		b, err := e.r.ReadByte()
		if err != nil {
			return nil, err
		}
		if e.cr {
			e.cr = false
			if b == '\n' {
				continue
			}
		}
		if b == '\n' || b == '\r' {
			e.cr = b == '\r'
			break
		}
		if e.line = append(e.line, b); len(e.line) > maxLine {
			return nil, errTooLong
		}
	}
	if e.first {
		e.first = false
		e.line = bytes.TrimPrefix(e.line, []byte("\xef\xbb\xbf"))
	}
	return e.line, nil
}
