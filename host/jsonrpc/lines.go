package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	methodClose = "$/close"
	// closeGrace is how long the peer has to take a close code.
	closeGrace = 2 * time.Second
	// closeWrite is how long the code itself may take to be written.
	closeWrite = time.Second
)

// Lines returns a transport of one JSON text per line over conn. A socket of
// this kind has no close codes, so the last line is the notification
// "$/close" {code, reason}.
func Lines(conn net.Conn) Transport {
	return &lines{conn: conn, r: bufio.NewReaderSize(conn, 16<<10), writing: make(chan struct{}, 1)}
}

type lines struct {
	conn    net.Conn
	r       *bufio.Reader
	writing chan struct{} // held by the writer of a line
	closing sync.Once
}

type closeParams struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

var closePrefix = []byte(`{"jsonrpc":"2.0","method":"` + methodClose + `"`)

func (l *lines) Read(ctx context.Context) ([]byte, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = l.conn.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > MaxFrame+1 {
			return nil, fmt.Errorf("line: %w", ErrTooBig)
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			_ = l.conn.Close() // nothing can be read any more
			return nil, fmt.Errorf("read line: %w", err)
		}
		break
	}
	line = line[:len(line)-1]
	if bytes.HasPrefix(line, closePrefix) {
		if c, ok := parseClose(line); ok {
			_ = l.conn.Close()
			return nil, c
		}
	}
	return line, nil
}

func parseClose(line []byte) (*CloseError, bool) {
	m, err := ParseMessage(line)
	if err != nil || !m.ID.IsZero() {
		return nil, false
	}
	var p closeParams
	if err := Unmarshal(m.Params, &p); err != nil {
		return nil, false
	}
	return &CloseError{Code: p.Code, Reason: p.Reason}, true
}

func (l *lines) Write(ctx context.Context, frame []byte) error {
	if bytes.IndexByte(frame, '\n') >= 0 {
		// Inside a string it would be escaped, so it is only white space.
		frame = bytes.ReplaceAll(frame, []byte("\n"), []byte(" "))
	}
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	deadline, _ := ctx.Deadline()
	if err := l.conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	buffers := net.Buffers{frame, []byte("\n")}
	if _, err := buffers.WriteTo(l.conn); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return nil
}

// Close writes the code unless a stuck line is in the way, then lets the
// reader see the peer's end for closeGrace.
func (l *lines) Close(code int, reason string) error {
	err := net.ErrClosed
	l.closing.Do(func() {
		// Read must end even if nobody is reading now.
		time.AfterFunc(closeGrace, func() { _ = l.conn.Close() })
		_ = l.conn.SetReadDeadline(time.Now().Add(closeGrace))
		params, encErr := Encode(closeParams{Code: code, Reason: reason})
		if encErr != nil {
			err = encErr
			return
		}
		select {
		case l.writing <- struct{}{}:
		default:
			// A line is stuck half written: no code can follow it.
			err = l.conn.Close()
			return
		}
		defer func() { <-l.writing }()
		_ = l.conn.SetWriteDeadline(time.Now().Add(closeWrite))
		if _, err = l.conn.Write(append(EncodeNotice(methodClose, params), '\n')); err != nil {
			_ = l.conn.Close()
			if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
				err = nil
			}
			return
		}
		if half, ok := l.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	return err
}
