package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// A posted call that is still held when its token is revoked, or when the server
// ends its request, is told why and hands over nothing.
func TestPostCut(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"held"}`
	tests := []struct {
		name   string
		live   bool
		cut    func(g *Gateway, end context.CancelFunc)
		status int
		want   string // in the body
	}{
		{"token revoked", true, func(g *Gateway, _ context.CancelFunc) { g.DropToken("token-read") }, http.StatusOK, CodeBadToken},
		{"token revoked before", false, func(*Gateway, context.CancelFunc) {}, http.StatusOK, CodeBadToken},
		{"server stops", true, func(_ *Gateway, end context.CancelFunc) { end() }, http.StatusServiceUnavailable, CodeStopping},
		{"another token revoked", true, func(g *Gateway, _ context.CancelFunc) { g.DropToken("token-admin") }, http.StatusOK, `"result":"secret"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := sample(Config{Live: func(string) bool { return test.live }})
				release, handed := make(chan struct{}), false
				g.Handle("held", "", func(ctx context.Context, c *Caller, _ json.RawMessage) (any, error) {
					OnWritten(ctx, func() { handed = true })
					select {
					case <-c.Done:
						return nil, context.Cause(ctx)
					case <-release:
						return "secret", nil
					}
				})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				var status int
				var response []byte
				go func() {
					var written func()
					status, response, written = g.Post(ctx, tokenOf("read"), []byte(body))
					written()
				}()
				synctest.Wait()
				test.cut(g, end)
				synctest.Wait()
				close(release)
				synctest.Wait()
				if status != test.status || !strings.Contains(string(response), test.want) {
					t.Errorf("got %d %s, want %d with %s", status, response, test.status, test.want)
				}
				if want := strings.Contains(test.want, "result"); handed != want {
					t.Errorf("handed over: %v, want %v", handed, want)
				}
				if n := len(g.st.posted); n != 0 {
					t.Errorf("%d posted calls are still counted", n)
				}
			})
		})
	}
}
