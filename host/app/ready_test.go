package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"meanwhile/host/config"
)

// A store that failed shows at once where supervisors look, without saying more
// than they need.
func TestNotReadyAfterAFailedWrite(t *testing.T) {
	data, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	cfg, err := config.Load(config.Sources{
		Flags: map[string]string{"listen": "127.0.0.1:0", "data": data},
		Env:   func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Start(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	get := func() (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + a.Address().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if status, body := get(); status != http.StatusOK {
		t.Errorf("before: %d %q", status, body)
	}
	a.storeFailed(errors.New("write /secret/path: input/output error"))
	if status, body := get(); status != http.StatusServiceUnavailable || !strings.Contains(body, "storage failed") || strings.Contains(body, "secret") {
		t.Errorf("after: %d %q, want 503 and the reason without its detail", status, body)
	}
	if err := <-a.Failed(); err == nil {
		t.Error("the process is not told to end")
	}
	http.DefaultClient.CloseIdleConnections()
}
