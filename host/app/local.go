package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/remotes"
)

const (
	// socketPathMax is what the kernel takes as the name of a socket.
	socketPathMax = 103
	// maxLocals bounds the command lines connected at once; it leaves room for
	// browsers below the gateway's own bound on clients.
	maxLocals = gateway.DefaultMaxClients * 3 / 4
)

// SocketPath is the socket of the host that has a data directory.
func SocketPath(data string) string { return filepath.Join(data, "socket") }

// listenLocal opens the socket for this user's command line. The caller has
// the data directory, so a socket that is there is a dead one.
func listenLocal(data string) (net.Listener, error) {
	path := SocketPath(data)
	if len(path) > socketPathMax {
		return nil, fmt.Errorf("socket %s: the path is over %d bytes: give a shorter directory with --data", path, socketPathMax)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	// The directory is closed to others already; this is the second lock.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close socket %s to others: %w", path, err), l.Close())
	}
	return l, nil
}

// serveLocal accepts command lines until the listener closes, and waits for
// those that are connected.
func (a *App) serveLocal(ctx context.Context, l net.Listener) {
	var clients sync.WaitGroup
	defer clients.Wait()
	free := make(chan struct{}, maxLocals)
	for {
		conn, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				a.fail(fmt.Errorf("accept on the socket: %w", err))
			}
			return
		}
		line := jsonrpc.Lines(conn)
		select {
		case free <- struct{}{}:
		default:
			// Said at once: one that waited unseen would look like a host that hangs.
			clients.Go(func() {
				err := line.Close(jsonrpc.CloseSlow, fmt.Sprintf("%d command lines are connected already: wait for some to end", maxLocals))
				a.log.Warn("command line refused", "connected", maxLocals, "close", err)
			})
			continue
		}
		clients.Go(func() {
			defer func() { <-free }()
			err := a.gateway.Accept(ctx, line, remotes.Local())
			a.log.Debug("command line left", "reason", err)
		})
	}
}
