package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Config is every setting of the host. Load fills all of it; the comments say
// what the zero value means to the packages that read it.
type Config struct {
	Listen string // TCP address of the page and /rpc
	Data   string // absolute data directory: log, lock, socket
	Log    slog.Level
	// LogFormat says how each line of the log is written; "" = text.
	LogFormat LogFormat

	HTTP      HTTP
	Ask       Ask
	Questions Questions
	Notify    Notify
	Model     Model
	Bash      Bash
	WebFetch  Limit
	RunCode   Limit

	Demo bool // script the model with the built-in demonstration
}

// HTTP is how the listener is reached.
type HTTP struct {
	TLSCert string   // PEM file; "" = plain HTTP, which is allowed on loopback only
	TLSKey  string   // PEM file; given with TLSCert
	Hosts   []string // further names the host answers to; none = loopback names
	Origins []string // further origins that may connect, such as an extension's
	// PublicURL is where a browser finds the page when something stands before
	// this host, such as a proxy that ends TLS; its name is among Hosts, and its
	// origin among Origins. "" = the listener's own address.
	PublicURL string
}

// Notify is how people are told who do not look at the page.
type Notify struct {
	Webhook       string        // address that gets signed posts; "" = none
	WebhookSecret Secret        // needed with Webhook
	Ntfy          string        // address of an ntfy topic; "" = none
	NtfyToken     Secret        // "" = none
	Text          bool          // the text of questions may leave the host
	Delay         time.Duration // how long somebody at the page has first; 0 = none
	AllowPrivate  bool          // push endpoints and redirects may lead to private addresses
	Contact       string        // https or mailto, for push services; "" = PublicURL
}

// LogFormat is the form of a log line.
type LogFormat string

// The two forms.
const (
	Text LogFormat = "text" // key=value, for people
	JSON LogFormat = "json" // one JSON object, for collectors
)

// AskMode tells which form of ask_user_question the agent gets.
type AskMode string

// The two forms.
const (
	Legacy AskMode = "legacy" // no timeout parameter; the ask blocks
	Timed  AskMode = "timed"  // the ask may end as pending and be answered late
)

// Ask is the question tool.
type Ask struct {
	Mode    AskMode       // "" = legacy
	Timeout time.Duration // window of a timed ask that names none; whole seconds
}

// Questions is the question service.
type Questions struct {
	MaxHold time.Duration // longest a claim may hold a timed ask past its deadline; 0 = no bound
}

// Model is the language model of the built-in agent.
type Model struct {
	Provider  string // deepseek, openai (or any server that speaks its protocol), script; "" = none: replies wait
	BaseURL   string // "" = the provider's own
	Name      string // "" = the provider's default
	APIKey    Secret // "" = none is sent
	Script    string // file of a scripted model; used by provider script
	MaxTokens int    // per request; 0 = the provider's default
}

// Bash is the command tool of the built-in agent.
type Bash struct {
	Dir        string        // working directory; "" = where the host was started
	Timeout    time.Duration // of a command that names none
	TimeoutMax time.Duration // longest a command may ask for
}

// Limit is how long one call of a tool may take.
type Limit struct {
	Timeout    time.Duration // of a call that names none
	TimeoutMax time.Duration // longest a call may ask for
}

// Secret is text that is never printed.
type Secret string

func (Secret) String() string               { return "[secret]" }
func (Secret) GoString() string             { return "[secret]" }
func (Secret) LogValue() slog.Value         { return slog.StringValue("[secret]") }
func (s Secret) Reveal() string             { return string(s) }
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Error is a value that was refused.
type Error struct {
	Key    string // the setting, or the whole file when empty
	Source string // "flag --listen", "environment MEANWHILE_LISTEN", "file /…/config.toml"
	Value  string
	Fix    string // what is wrong and what to write instead
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %s", e.Source, e.Fix)
	}
	return fmt.Sprintf("%s: %q from %s %s", e.Key, e.Value, e.Source, e.Fix)
}

// Sources is where Load looks.
type Sources struct {
	Flags map[string]string           // key → text, only the flags that were given
	Env   func(string) (string, bool) // nil = the process environment
	File  string                      // "" = MEANWHILE_CONFIG, else the default place
}

// Load takes each setting from its first source and checks the whole.
func Load(src Sources) (Config, error) {
	c, from, err := load(src, func(Setting) bool { return true })
	if err != nil {
		return Config{}, err
	}
	return finish(c, from, src.env())
}

// load takes the wanted settings; from tells where each came from.
func load(src Sources, wanted func(Setting) bool) (c Config, from map[string]string, err error) {
	src.Env = src.env()
	file, err := src.readFile()
	if err != nil {
		return Config{}, nil, err
	}
	from = map[string]string{}
	for _, s := range settings() {
		if !wanted(s) {
			continue
		}
		text, source := s.Default, "the default"
		var missing error
		if s.defaultOf != nil {
			text, missing = s.defaultOf(src.Env)
		}
		if v, ok := file.values[s.Key]; ok {
			text, source = v, "file "+file.path
		}
		if v, ok := src.Env(s.Env()); ok {
			text, source = v, "environment "+s.Env()
		}
		if v, ok := src.Flags[s.Key]; ok {
			text, source = v, "flag --"+s.Flag
		}
		if source == "the default" && missing != nil {
			return Config{}, nil, &Error{Key: s.Key, Source: source, Fix: missing.Error()}
		}
		if fix := s.set(&c, text); fix != "" {
			return Config{}, nil, &Error{Key: s.Key, Source: source, Value: text, Fix: fix}
		}
		from[s.Key] = source
	}
	return c, from, nil
}

// DataDir takes the data directory alone, for commands that only look for a
// running host.
func DataDir(src Sources) (string, error) {
	c, _, err := load(src, func(s Setting) bool { return s.Key == "data" })
	return c.Data, err
}

// finish settles what depends on several settings.
func finish(c Config, from map[string]string, env func(string) (string, bool)) (Config, error) {
	if (c.HTTP.TLSCert == "") != (c.HTTP.TLSKey == "") {
		key, other := "http.tls_cert", "http.tls_key"
		if c.HTTP.TLSCert == "" {
			key, other = other, key
		}
		value := c.HTTP.TLSCert + c.HTTP.TLSKey
		return Config{}, &Error{Key: key, Source: from[key], Value: value, Fix: "is useless alone: set " + other + " too"}
	}
	for _, l := range []struct {
		tool string
		Limit
	}{
		{"bash", Limit{c.Bash.Timeout, c.Bash.TimeoutMax}}, {"web_fetch", c.WebFetch}, {"run_code", c.RunCode},
	} {
		if own, longest := l.tool+".timeout", l.tool+".timeout_max"; l.TimeoutMax < l.Timeout {
			return Config{}, &Error{Key: longest, Source: from[longest], Value: l.TimeoutMax.String(),
				Fix: fmt.Sprintf("is shorter than %s (%v from %s): raise it", own, l.Timeout, from[own])}
		}
	}
	if c.Notify.Webhook != "" && c.Notify.WebhookSecret == "" {
		return Config{}, &Error{Key: "notify.webhook", Source: from["notify.webhook"], Value: c.Notify.Webhook,
			Fix: "needs a secret that its posts are signed with: set MEANWHILE_NOTIFY_WEBHOOK_SECRET, or notify.webhook_secret in the settings file"}
	}
	if u, err := url.Parse(c.HTTP.PublicURL); err == nil && u.Host != "" {
		c.HTTP.Hosts = append(c.HTTP.Hosts, u.Host)
		c.HTTP.Origins = append(c.HTTP.Origins, u.Scheme+"://"+u.Host)
	}
	deepseek, _ := env("DEEPSEEK_API_KEY")
	openai, _ := env("OPENAI_API_KEY")
	m := &c.Model
	if m.Provider == "" {
		switch {
		case m.Script != "" || c.Demo:
			m.Provider = "script"
		case m.BaseURL != "":
			m.Provider = "openai"
		case deepseek != "":
			m.Provider = "deepseek"
		case openai != "":
			m.Provider = "openai"
		}
	}
	switch m.Provider {
	case "deepseek":
		m.APIKey = Secret(deepseek)
	case "openai":
		m.APIKey = Secret(openai)
	case "script":
		if m.Script == "" && !c.Demo {
			return Config{}, &Error{Key: "model.provider", Source: from["model.provider"], Value: "script", Fix: "needs a script: set model.script to its file, or use --demo"}
		}
	}
	if (m.Provider == "deepseek" || m.Provider == "openai") && m.APIKey == "" && m.BaseURL == "" {
		return Config{}, &Error{Key: "model.provider", Source: from["model.provider"], Value: m.Provider,
			Fix: "needs " + strings.ToUpper(m.Provider) + "_API_KEY in the environment, or model.base_url for a server that wants no key"}
	}
	return c, nil
}

func (src Sources) env() func(string) (string, bool) {
	if src.Env != nil {
		return src.Env
	}
	return os.LookupEnv
}

type fileValues struct {
	path   string
	values map[string]string
}

func (src Sources) readFile() (fileValues, error) {
	path, explicit := src.File, true
	if path == "" {
		if path, explicit = src.Env("MEANWHILE_CONFIG"); path == "" {
			explicit = false
			dir, ok := xdg(src.Env, "XDG_CONFIG_HOME", ".config")
			if !ok {
				return fileValues{}, nil
			}
			path = filepath.Join(dir, "config.toml")
		}
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !explicit:
		return fileValues{}, nil
	case err != nil:
		return fileValues{}, &Error{Source: "file " + path, Fix: err.Error()}
	}
	values, err := parseTOML(raw)
	if err != nil {
		return fileValues{}, &Error{Source: "file " + path, Fix: err.Error()}
	}
	return fileValues{path: path, values: values}, nil
}

// xdg returns this program's folder below a base directory. A relative base is
// ignored, as the base directory rules ask.
func xdg(env func(string) (string, bool), name, fallback string) (string, bool) {
	if base, _ := env(name); filepath.IsAbs(base) {
		return filepath.Join(base, "meanwhile"), true
	}
	if home, _ := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, fallback, "meanwhile"), true
	}
	return "", false
}
