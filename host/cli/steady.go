package cli

import (
	"context"
	"errors"
	"time"

	"meanwhile/host/jsonrpc"
)

const (
	// restartWithin is how long a host that went away may take to come back
	// before a call that waited on it gives up.
	restartWithin = 10 * time.Second
	redialEvery   = 200 * time.Millisecond
)

// steady makes calls on a host that may restart meanwhile. Only calls that may
// be made twice go through it: an ask has a request id, an await and an admit
// change nothing the second time.
type steady struct {
	data, token string
	patience    time.Duration // how long a lost host is looked for; 0: not at all
	conn        *jsonrpc.Conn
}

// dialSteady connects once; that there is no host is an error at once.
func dialSteady(ctx context.Context, data, token string, patience time.Duration) (*steady, error) {
	conn, _, err := dialAs(ctx, data, token, nil)
	if err != nil {
		return nil, err
	}
	return &steady{data: data, token: token, patience: patience, conn: conn}, nil
}

// Call makes a call, on a new connection when the old one broke.
func (s *steady) Call(ctx context.Context, method string, params, result any) error {
	until := time.Now().Add(s.patience)
	for {
		err := s.once(ctx, method, params, result)
		var refused *jsonrpc.Error
		if err == nil || errors.As(err, &refused) || ctx.Err() != nil || s.conn != nil || !time.Now().Before(until) {
			return err
		}
		select {
		case <-time.After(redialEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// once leaves conn nil when the connection is of no more use.
func (s *steady) once(ctx context.Context, method string, params, result any) error {
	if s.conn == nil {
		conn, _, err := dialAs(ctx, s.data, s.token, nil)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	err := s.conn.Call(ctx, method, params, result)
	select {
	case <-s.conn.Done():
		if err != nil {
			s.close()
		}
	default:
	}
	return err
}

func (s *steady) close() {
	if s.conn != nil {
		s.conn.Close(jsonrpc.CloseNormal, "done")
		s.conn.Wait()
		s.conn = nil
	}
}
