package security

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"meanwhile/host/app"
	"meanwhile/host/httpserver"
	"meanwhile/host/jsonrpc"
)

func (s *site) post(path, token string, body io.Reader) (int, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL(path), body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", s.own("http://127.0.0.1:$"))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the status is what counts
	return resp.StatusCode, resp.Header
}

// Codes cannot be guessed: ten attempts, then one every six seconds, and a right
// code does not help past that.
func TestLoginIsLimited(t *testing.T) {
	s := newSite(t)
	link := s.App().LoginURL()
	_, code, _ := strings.Cut(link, "#code=")
	refused := 0
	for i := range 15 {
		status, header := s.post("/auth/login", "", strings.NewReader(fmt.Sprintf(`{"code":"guess-%d"}`, i)))
		switch status {
		case http.StatusTooManyRequests:
			refused++
			if header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		case http.StatusUnauthorized:
		default:
			t.Errorf("guess %d: status %d", i, status)
		}
	}
	if refused < 4 {
		t.Errorf("%d of 15 guesses were limited, want at least 4", refused)
	}
	if status, _ := s.post("/auth/login", "", strings.NewReader(`{"code":"`+code+`"}`)); status != http.StatusTooManyRequests {
		t.Errorf("a right code past the limit: %d, want 429", status)
	}
}

func TestSizes(t *testing.T) {
	s := newSite(t)
	big := func(n int) io.Reader { return bytes.NewReader(bytes.Repeat([]byte(" "), n)) }
	for _, tc := range []struct {
		name, path, token string
		size, want        int
	}{
		{"call", "/rpc", "admin", 1<<20 + 1, http.StatusRequestEntityTooLarge},
		{"login", "/auth/login", "", 4<<10 + 1, http.StatusRequestEntityTooLarge},
		{"API", "/api/v1/sessions", "ask", 2 << 20, http.StatusRequestEntityTooLarge},
	} {
		if status, _ := s.post(tc.path, s.tokens[tc.token], big(tc.size)); status != tc.want {
			t.Errorf("%s of %d bytes: status %d, want %d", tc.name, tc.size, status, tc.want)
		}
	}
	t.Run("MCP", func(t *testing.T) {
		if status, _ := s.post("/mcp", s.tokens["ask"], big(8<<20)); status < 400 || status == http.StatusInternalServerError {
			t.Errorf("8 MiB: status %d, want a refusal", status)
		}
	})
	t.Run("header", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL("/healthz"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", 64<<10))
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d, want 431", resp.StatusCode)
		}
	})
	t.Run("frame", func(t *testing.T) {
		transport, err := s.handshake("", nil, s.tokens["read"])
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_ = transport.Write(ctx, bytes.Repeat([]byte(" "), 1<<20+1)) // it may be cut
		for {
			if _, err = transport.Read(ctx); err != nil {
				break
			}
		}
		var closed *jsonrpc.CloseError
		if !errors.As(err, &closed) || closed.Code != 1009 {
			t.Errorf("closed with %v, want 1009", err)
		}
		transport.Close(jsonrpc.CloseNormal, "")
	})
	t.Run("slow header", func(t *testing.T) {
		c, err := net.Dial("tcp", s.App().Address().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX:"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err = bufio.NewReader(c).ReadString('\n')
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Error("a header that never ends keeps its connection")
		}
	})
}

// Anything but loopback needs TLS, and a name counts as elsewhere.
func TestListensOnLoopbackOnly(t *testing.T) {
	s := newSite(t)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "box.example:0", "localhost.evil.example:0"} {
		cfg := s.Config()
		cfg.Listen, cfg.Data = address, t.TempDir()
		a, err := app.Start(context.Background(), cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("the host listens on %s without TLS", address)
			_ = a.Close(context.Background()) // it should not be there
			continue
		}
		if !errors.Is(err, httpserver.ErrNotLoopback) {
			t.Errorf("%s: %v, want ErrNotLoopback", address, err)
		}
	}
}
