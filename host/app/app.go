package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"meanwhile/host/agent"
	"meanwhile/host/auth"
	"meanwhile/host/config"
	"meanwhile/host/gateway"
	"meanwhile/host/gateway/wsconn"
	"meanwhile/host/httpserver"
	"meanwhile/host/metrics"
	"meanwhile/host/notify"
	"meanwhile/host/outside"
	"meanwhile/host/question"
	"meanwhile/host/remotes"
	"meanwhile/host/session"
	"meanwhile/host/session/logstore"
	"meanwhile/wasm/bridge"
	"meanwhile/wasm/quickjs"
	"meanwhile/web"
)

// Version is this build's.
const Version = "0.1.0"

// tokenKind is where the store keeps tokens.
const tokenKind = "token"

// App is a running host.
type App struct {
	cfg    config.Config
	log    *slog.Logger
	failed chan error
	broken atomic.Bool // the store failed

	metrics   *metrics.Metrics
	store     *logstore.Store
	sessions  *session.Store
	tokens    *auth.Tokens
	codes     *auth.Codes
	module    *bridge.Bridge
	engine    *quickjs.Engine // nil when this build has none
	gateway   *gateway.Gateway
	agents    *agent.Registry
	questions *question.Service
	outside   *outside.Service
	notify    *notify.Service
	server    *httpserver.Server
	address   net.Addr
	serving   sync.WaitGroup

	undo []func(context.Context) error // how to take it apart, last first
}

// Start runs a host with these settings until Close. log nil is slog.Default.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *App, err error) {
	if log == nil {
		log = slog.Default()
	}
	a := &App{cfg: cfg, log: log, failed: make(chan error, 1)}
	a.metrics = metrics.New(metrics.Sources{
		Questions: func() question.Stats { return a.questions.Stats() },
		Rows:      func() []session.Row { return a.sessions.List() },
		Clients:   func() int { clients, _ := a.gateway.Counts(); return clients },
		Ready:     func() error { return a.ready() },
	})
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []func(context.Context) error{
		a.openStore, a.openModule, a.openServices, a.listen, a.resumeQueued, a.playDemo,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Failed gives the reason why the process must end, once.
func (a *App) Failed() <-chan error { return a.failed }

// fail is told by whatever cannot go on.
func (a *App) fail(err error) {
	select {
	case a.failed <- err:
	default: // one reason is enough
	}
}

// storeFailed is told of a write whose fate is unknown.
func (a *App) storeFailed(err error) {
	a.broken.Store(true)
	a.fail(err)
}

// Reasons of a host that is not ready, for whoever asks it.
var (
	errStoreFailed  = errors.New("storage failed: nothing is taken any more, and the host ends; its log says why")
	errModuleFailed = errors.New("the checks of questions and answers fail: none are taken; the host's log says why")
)

// ready returns why asks and answers are not taken, or nil.
func (a *App) ready() error {
	if a.broken.Load() {
		return errStoreFailed
	}
	if err := a.module.Healthy(); err != nil {
		a.log.Error("the client module fails", "error", err)
		return errModuleFailed
	}
	return nil
}

// Address is where the page is served.
func (a *App) Address() net.Addr { return a.address }

// LoginURL returns a link that signs a browser in, once.
func (a *App) LoginURL() string { return a.loginURL(a.codes.Issue()) }

// loginURL puts the code into the fragment, which browsers do not send: it
// reaches no log and no Referer.
func (a *App) loginURL(code string) string { return a.pageURL() + "/#code=" + code }

// pageURL is where a browser finds the page, without a slash at its end.
func (a *App) pageURL() string {
	switch {
	case a.cfg.HTTP.PublicURL != "":
		return a.cfg.HTTP.PublicURL
	case a.cfg.HTTP.TLSCert != "":
		return "https://" + a.reachable()
	}
	return "http://" + a.reachable()
}

// reachable is the address in a form that a browser can open and the gate lets
// in: a listener on every interface is reached by a configured name.
func (a *App) reachable() string {
	tcp, ok := a.address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.address.String()
	}
	name := "localhost"
	if len(a.cfg.HTTP.Hosts) > 0 {
		name = a.cfg.HTTP.Hosts[0]
	}
	if _, _, err := net.SplitHostPort(name); err == nil {
		return name
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// Close takes the host apart, last part first. It records nothing for what
// people have not answered.
func (a *App) Close(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(a.undo) {
		errs = append(errs, undo(ctx))
	}
	a.undo = nil
	return errors.Join(errs...)
}

func (a *App) onClose(f func(context.Context) error) { a.undo = append(a.undo, f) }

func (a *App) openStore(ctx context.Context) error {
	backend, err := logstore.Open(a.cfg.Data, logstore.Options{Log: a.log, Synced: func(s logstore.Sync) {
		a.metrics.Synced(s.Took, s.Batches, s.Bytes)
	}})
	if err != nil {
		return err // names the directory, and who has it
	}
	if r := backend.Report(); r != nil && !r.Intact() {
		a.log.Error("the log is damaged: the damaged sessions can be read up to the fault, the others go on", "report", r.String(), "copy", r.Aside)
	}
	a.sessions, err = session.Open(backend, session.Options{Fatal: a.storeFailed, Log: a.log, Landed: a.metrics.Landed})
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	a.store = backend
	a.onClose(func(context.Context) error { return a.sessions.Close() })
	repaired, err := a.sessions.RepairAll(ctx)
	if err != nil {
		return err
	}
	if repaired > 0 {
		a.log.Info("repaired sessions whose turn was cut", "count", repaired)
	}
	if a.tokens, err = auth.OpenTokens(tokenStore{a.sessions.Values()}, nil); err != nil {
		return err
	}
	a.codes = auth.NewCodes(a.tokens)
	return nil
}

// CacheDir is where the module's compiled code is kept for all hosts and
// commands of this user; "" when the user has no place for such things.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "meanwhile")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

func (a *App) openModule(ctx context.Context) (err error) {
	if a.module, err = bridge.New(ctx, bridge.Options{CacheDir: CacheDir()}); err != nil {
		return err
	}
	a.onClose(func(ctx context.Context) error { return a.module.Close(ctx) })
	if a.engine, err = quickjs.New(quickjs.Options{CacheDir: CacheDir()}); err != nil {
		a.log.Warn("agents cannot run programs", "error", err)
		return nil
	}
	a.onClose(a.engine.Close)
	return nil
}

func (a *App) openServices(context.Context) error {
	a.gateway = gateway.New(gateway.Config{
		Version:     Version,
		Module:      gateway.Module{Path: "/client.wasm", SHA256: a.module.SHA256()},
		Auth:        remotes.Authenticator(a.tokens),
		Live:        func(id string) bool { return id == remotes.Local().TokenID || a.tokens.Live(id) },
		Wire:        remotes.Wire,
		SettleScope: auth.Scopes(auth.Answer).String(),
		Log:         a.log,
	})
	model, err := newModel(a.cfg, a.log)
	if err != nil {
		return err
	}
	a.agents = agent.NewRegistry(agent.Options{
		Open: a.sessions.Open,
		Attach: func(ag *agent.Agent) (agent.Driver, error) {
			return a.driver(ag, model)
		},
		Changed: a.note,
	})
	if a.notify, err = notify.Open(a.notifyOptions()); err != nil {
		return err
	}
	a.questions = question.New(question.Options{
		Emit:      a.notify.Watch(remotes.Emit(a.gateway)),
		Validator: a.module,
		Agents:    a.agents,
		MaxHold:   a.cfg.Questions.MaxHold,
		Logger:    a.log,
		Settled:   a.metrics.Settled,
	})
	header, err := outsideHeader(a.questions)
	if err != nil {
		return err
	}
	a.outside = outside.New(outside.Options{
		Questions: a.questions, Agents: a.agents, Sessions: a.sessions,
		Header: header, DefaultTimeout: a.cfg.Ask.Timeout,
	})
	remotes.Bind(a.gateway, remotes.Options{
		Sessions: a.sessions, Agents: a.agents, Questions: a.questions, Outside: a.outside,
		Tokens: a.tokens, Codes: a.codes, Notify: a.notify, LoginURL: a.loginURL, Backup: a.store.Backup,
	})
	a.tokens.OnRevoke(a.gateway.DropToken)
	a.tokens.OnRevoke(a.notify.DropToken)

	// Undone from the last: the questions stand still before a socket ends or a
	// tool is cut, or a lost claim and a cancelled call would settle them.
	a.onClose(a.agents.Close)
	a.onClose(func(context.Context) error { a.outside.Close(); return nil })
	a.onClose(func(context.Context) error { a.gateway.Close(); return nil })
	a.onClose(func(context.Context) error { a.questions.Close(); return nil })
	a.onClose(func(context.Context) error { a.notify.Close(); return nil })
	return nil
}

func (a *App) listen(ctx context.Context) (err error) {
	var secure *tls.Config
	if a.cfg.HTTP.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(a.cfg.HTTP.TLSCert, a.cfg.HTTP.TLSKey)
		if err != nil {
			return fmt.Errorf("http.tls_cert and http.tls_key: %w", err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	gate := &auth.Gate{Tokens: a.tokens, Hosts: a.cfg.HTTP.Hosts, Origins: a.cfg.HTTP.Origins}
	a.server, err = httpserver.New(httpserver.Options{
		Gate: gate, Codes: a.codes,
		Page: web.Files(), Module: a.module.Bytes(),
		Socket: a.serveSocket, Post: a.servePost, Ready: a.ready,
		Extra: a.doors(), TLS: secure != nil, Log: a.log,
	})
	if err != nil {
		return err
	}
	local, err := listenLocal(a.cfg.Data)
	if err != nil {
		return err
	}
	listener, err := httpserver.Listen(a.cfg.Listen, secure)
	if err != nil {
		return errors.Join(err, local.Close())
	}
	a.address = listener.Addr()
	a.serving.Go(func() {
		if err := a.server.Serve(listener); err != nil {
			a.fail(fmt.Errorf("serve %s: %w", a.address, err))
		}
	})
	locals, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.serving.Go(func() { a.serveLocal(locals, local) })
	a.onClose(func(ctx context.Context) error {
		stop()
		err := errors.Join(a.server.Close(ctx), local.Close())
		a.serving.Wait()
		return err
	})
	a.log.Info("listening", "address", a.address.String(), "data", a.cfg.Data)
	return nil
}

// serveSocket runs one WebSocket client. The gate has checked its Origin.
func (a *App) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, token *auth.Token) {
	t, err := wsconn.Upgrade(w, r, wsconn.Config{CheckOrigin: func(*http.Request) bool { return true }})
	if err != nil {
		a.log.Debug("handshake", "remote", r.RemoteAddr, "error", err)
		return
	}
	var p gateway.Principal
	if token != nil {
		p = remotes.Principal(*token)
	}
	err = a.gateway.Accept(ctx, t, p)
	a.log.Debug("client left", "remote", r.RemoteAddr, "reason", err)
}

func (a *App) servePost(ctx context.Context, token auth.Token, body []byte) (int, []byte, func()) {
	return a.gateway.Post(ctx, remotes.Principal(token), body)
}

// tokenStore keeps tokens beside the sessions.
type tokenStore struct{ values session.Values }

func (s tokenStore) Put(key string, value []byte) error { return s.values.Put(tokenKind, key, value) }
func (s tokenStore) Delete(key string) error            { return s.values.Delete(tokenKind, key) }
func (s tokenStore) Each(f func(string, []byte) error) error {
	return s.values.Each(tokenKind, f)
}
