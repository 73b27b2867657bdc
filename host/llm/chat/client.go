package chat

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"meanwhile/host/llm"
	"meanwhile/shared/deadline"
)

const (
	idleCode = string(llm.KindIdle)

	defaultIdle     = 5 * time.Minute
	defaultProgress = 30 * time.Minute
	defaultRetries  = 3
	firstPause      = 500 * time.Millisecond
	maxPause        = time.Minute
	tailTime        = 5 * time.Second
)

// Config is one provider. BaseURL is needed; zero values elsewhere mean what
// the comments say.
type Config struct {
	Name    string // for errors and logs; empty is the host of BaseURL
	BaseURL string // up to and without /chat/completions
	APIKey  string // empty sends no Authorization
	Model   string // when a request names none
	Dialect Dialect

	HTTP     *http.Client  // nil is a client of its own over http.DefaultTransport
	Idle     time.Duration // longest silence; 0 is 5 minutes
	Progress time.Duration // longest time without a chunk; 0 is 30 minutes
	Retries  int           // 0 is 3, negative is none
	Log      *slog.Logger  // nil discards
}

// LogValue keeps the key out of logs.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", c.Name), slog.String("model", c.Model))
}

// Dialect is how a provider departs from the others in what it is sent. How
// providers depart in what they send needs no switch: all of it is understood.
type Dialect struct {
	Reasoning           Reasoning
	NoUsageOption       bool // the provider refuses stream_options
	MaxCompletionTokens bool // the limit is called max_completion_tokens
}

// Client is an llm.Provider.
type Client struct {
	cfg  Config
	url  string
	http *http.Client
	log  *slog.Logger
}

// New checks a configuration and returns a client.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("llm: base url must be an http or https address")
	}
	if u.User != nil {
		return nil, errors.New("llm: base url must hold no user or password; set the api key instead")
	}
	if strings.ContainsFunc(cfg.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("llm: api key must be printable ascii without spaces")
	}
	if cfg.Name == "" {
		cfg.Name = u.Host
	}
	if cfg.Idle <= 0 {
		cfg.Idle = defaultIdle
	}
	if cfg.Progress <= 0 {
		cfg.Progress = defaultProgress
	}
	cfg.Progress = max(cfg.Progress, cfg.Idle+1) // the longer of the two, always
	if cfg.Retries == 0 {
		cfg.Retries = defaultRetries
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var client http.Client
	if cfg.HTTP != nil {
		client = *cfg.HTTP
	}
	// A redirect is an error of the configuration, and following one could
	// carry the key elsewhere. No Timeout: it would end long streams.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Timeout = 0
	u.Path = strings.TrimSuffix(u.Path, "/") + "/chat/completions"
	return &Client{cfg: cfg, url: u.String(), http: &client, log: cfg.Log}, nil
}

// Name returns the provider's name.
func (c *Client) Name() string { return c.cfg.Name }

// Stream makes one model call; see llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		body, err := c.encode(req)
		if err != nil {
			yield(llm.Chunk{}, c.fail(llm.KindRequest, err, err.Error()))
			return
		}
		for attempt := 0; ; attempt++ {
			began, failure := c.attempt(ctx, body, yield)
			if failure == nil {
				return
			}
			pause, again := c.pause(attempt, failure)
			if began || !again {
				yield(llm.Chunk{}, failure)
				return
			}
			c.log.InfoContext(ctx, "model call failed, trying again", "provider", c.cfg.Name, "kind", failure.Kind, "status", failure.Status, "attempt", attempt+1, "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				yield(llm.Chunk{}, c.fail(llm.KindAborted, context.Cause(ctx), "cancelled"))
				return
			}
		}
	}
}

// pause decides whether to try again, and after how long.
func (c *Client) pause(attempt int, e *llm.Error) (time.Duration, bool) {
	switch e.Kind {
	case llm.KindRateLimit, llm.KindServer, llm.KindConnect, llm.KindCut:
	default:
		return 0, false
	}
	if attempt >= c.cfg.Retries || e.RetryAfter > maxPause {
		return 0, false
	}
	d := min(firstPause<<min(attempt, 10), maxPause)
	d = d/2 + rand.N(d/2+1)
	return max(d, e.RetryAfter), true
}

// attempt makes one HTTP request and yields what comes. began reports whether
// anything was yielded; a nil failure means that the sequence is over, by its
// finish chunk or because the consumer broke off.
func (c *Client) attempt(ctx context.Context, body []byte, yield func(llm.Chunk, error) bool) (began bool, failure *llm.Error) {
	s, failure := c.open(ctx, body)
	if failure != nil {
		return false, failure
	}
	defer s.close()
	for {
		chunks, failure := s.next()
		if failure != nil {
			return began, failure
		}
		for _, chunk := range chunks {
			began = true
			if !yield(chunk, nil) || chunk.Kind == llm.Finish {
				return began, nil
			}
		}
	}
}

// open sends the request and returns the stream once its headers came.
func (c *Client) open(ctx context.Context, body []byte) (_ *stream, failure *llm.Error) {
	s, err := newStream(ctx, c)
	if err != nil {
		return nil, c.fail(llm.KindRequest, err, err.Error())
	}
	defer func() {
		if failure != nil {
			s.close()
		}
	}()
	req, err := http.NewRequestWithContext(s.ctx(), http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, c.fail(llm.KindRequest, err, err.Error())
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	var resp *http.Response
	err = s.wait(func() error {
		resp, err = c.http.Do(req)
		return err
	})
	if err != nil {
		// The address in a url.Error is noise; its cause says what happened.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, c.broken(ctx, s.ctx(), llm.KindConnect, err)
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp)
	}
	if !isStream(resp.Header) {
		e := c.refused(resp)
		e.Kind, e.Status = llm.KindProtocol, 0
		e.Message = c.clean("the answer is not an event stream: " + e.Message)
		return nil, e
	}
	s.events = newEvents(resp.Body, s.idle.Pulse)
	return s, nil
}

// newStream arms nothing yet; the idle watchdog's context ends with the
// progress watchdog's, so either limit closes the request.
func newStream(ctx context.Context, c *Client) (*stream, error) {
	progress, err := deadline.NewWatchdog(ctx, c.cfg.Progress, idleCode)
	if err != nil {
		return nil, err
	}
	idle, err := deadline.NewWatchdog(progress.Context(), c.cfg.Idle, idleCode)
	if err != nil {
		progress.Stop()
		return nil, err
	}
	return &stream{c: c, caller: ctx, progress: progress, idle: idle}, nil
}
