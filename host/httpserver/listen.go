package httpserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// maxConns bounds open connections; the next ones wait in the kernel's queue.
const maxConns = 1024

// ErrNotLoopback says that an address beyond this machine needs TLS.
var ErrNotLoopback = errors.New("listening beyond this machine needs TLS: set http.tls_cert and http.tls_key, or listen on 127.0.0.1")

// Listen opens the address. config is nil for plain HTTP, which is for
// loopback only.
func Listen(address string, config *tls.Config) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if config == nil && !loopback(host) {
		return nil, fmt.Errorf("listen on %s: %w", address, ErrNotLoopback)
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the address is in use, perhaps by another meanwhile: stop that program or choose another port with --listen: %w", address, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not allowed: choose a port over 1023 with --listen: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	l = &limited{Listener: l, free: make(chan struct{}, maxConns), closed: make(chan struct{})}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// loopback tells whether a host part names this machine only. A name other
// than localhost is not looked up: what it means may change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// limited accepts at most cap(free) connections at a time.
type limited struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: c, free: l.free}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type counted struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.free })
	return err
}
