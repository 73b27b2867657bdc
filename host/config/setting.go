package config

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// askTimeoutMax is the longest window in seconds: a browser's timers hold
// 2147483647 ms.
const askTimeoutMax = 2147483

// Setting describes one setting, for flags and help.
type Setting struct {
	Key     string
	Flag    string // "" = none: a secret on a command line is seen by others
	Default string // as text; "" = none, or depends on the machine
	Help    string

	defaultOf func(env func(string) (string, bool)) (string, error)
	set       func(*Config, string) string // returns what is wrong and what to write, or ""
}

// Env is the environment variable of the setting.
func (s Setting) Env() string {
	return "MEANWHILE_" + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_"))
}

// Bool tells whether the setting is a switch, which needs no value as a flag.
func (s Setting) Bool() bool { return s.Default == "false" || s.Default == "true" }

// Settings lists every setting.
func Settings() []Setting { return settings() }

func settings() []Setting {
	return []Setting{
		{Key: "listen", Flag: "listen", Default: "127.0.0.1:7331", Help: "address of the page and of /rpc", set: func(c *Config, v string) string {
			c.Listen = v
			return checkAddress(v)
		}},
		{Key: "data", Flag: "data", Help: "data directory (default $XDG_DATA_HOME/meanwhile)", defaultOf: defaultData, set: func(c *Config, v string) string {
			if v == "" {
				return "is empty: name a directory"
			}
			abs, err := filepath.Abs(v)
			if err != nil {
				return err.Error()
			}
			c.Data = abs
			return ""
		}},
		{Key: "log", Flag: "log", Default: "info", Help: "log level: debug, info, warn or error", set: func(c *Config, v string) string {
			if c.Log.UnmarshalText([]byte(v)) != nil {
				c.Log = slog.LevelInfo
				return "is not a level: write debug, info, warn or error"
			}
			return ""
		}},
		{Key: "log_format", Flag: "log-format", Default: "text", Help: "form of a log line: text or json", set: func(c *Config, v string) string {
			switch LogFormat(v) {
			case Text, JSON:
				c.LogFormat = LogFormat(v)
				return ""
			}
			return "is not a form: write text or json"
		}},
		{Key: "http.tls_cert", Flag: "tls-cert", Help: "PEM certificate, needed to listen beyond loopback", set: func(c *Config, v string) string {
			c.HTTP.TLSCert = v
			return ""
		}},
		{Key: "http.tls_key", Flag: "tls-key", Help: "PEM key of the certificate", set: func(c *Config, v string) string {
			c.HTTP.TLSKey = v
			return ""
		}},
		{Key: "http.hosts", Flag: "host", Help: "further host names to answer to, separated by commas", set: func(c *Config, v string) string {
			c.HTTP.Hosts = list(v)
			for _, h := range c.HTTP.Hosts {
				if strings.ContainsAny(h, "/* ") {
					return "holds " + strconv.Quote(h) + ", which is no host name: write names such as box.example or box.example:7331"
				}
			}
			return ""
		}},
		{Key: "http.origins", Flag: "origin", Help: "further origins that may connect, separated by commas", set: func(c *Config, v string) string {
			c.HTTP.Origins = list(v)
			for _, o := range c.HTTP.Origins {
				if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || strings.Contains(o, "*") {
					return "holds " + strconv.Quote(o) + ", which is no origin: write scheme://host[:port] without a path"
				}
			}
			return ""
		}},
		{Key: "http.public_url", Flag: "public-url", Help: "where browsers find the page behind a proxy, such as https://box.example", set: func(c *Config, v string) string {
			u, err := url.Parse(v)
			if v != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "") {
				return "is not the address of a page: write https://name[:port] without a path"
			}
			c.HTTP.PublicURL = strings.TrimRight(strings.ToLower(v), "/")
			return ""
		}},
		{Key: "notify.webhook", Flag: "notify-webhook", Help: "address that gets a signed post for each question", set: func(c *Config, v string) string {
			c.Notify.Webhook = v
			return webAddress(v)
		}},
		{Key: "notify.webhook_secret", Help: "secret of the webhook's signatures", set: func(c *Config, v string) string {
			c.Notify.WebhookSecret = Secret(v)
			return ""
		}},
		{Key: "notify.ntfy", Flag: "notify-ntfy", Help: "ntfy topic that is told of questions, such as https://ntfy.example/topic", set: func(c *Config, v string) string {
			c.Notify.Ntfy = v
			if u, err := url.Parse(v); v != "" && err == nil && strings.Trim(u.Path, "/") == "" {
				return "names no topic: write https://server/topic"
			}
			return webAddress(v)
		}},
		{Key: "notify.ntfy_token", Help: "access token of the ntfy server", set: func(c *Config, v string) string {
			c.Notify.NtfyToken = Secret(v)
			return ""
		}},
		{Key: "notify.text", Flag: "notify-text", Default: "false", Help: "let the text of questions leave the host in notifications", set: func(c *Config, v string) string {
			return toggle(v, &c.Notify.Text)
		}},
		{Key: "notify.delay", Flag: "notify-delay", Default: "10s", Help: "how long somebody at the page has before others are told (0 = at once)", set: func(c *Config, v string) string {
			return duration(v, 0, &c.Notify.Delay)
		}},
		{Key: "notify.allow_private", Flag: "notify-allow-private", Default: "false", Help: "let push endpoints and redirects lead to private addresses", set: func(c *Config, v string) string {
			return toggle(v, &c.Notify.AllowPrivate)
		}},
		{Key: "notify.contact", Flag: "notify-contact", Help: "mailto: or https: address that push services see (default: the public URL)", set: func(c *Config, v string) string {
			c.Notify.Contact = v
			if v != "" && !strings.HasPrefix(v, "mailto:") && !strings.HasPrefix(v, "https://") {
				return "is no contact: write mailto:you@example.org or https://…"
			}
			return ""
		}},
		{Key: "ask.mode", Flag: "ask-mode", Default: string(Legacy), Help: "form of the question tool: legacy (blocks) or timed", set: func(c *Config, v string) string {
			c.Ask.Mode = AskMode(v)
			if c.Ask.Mode != Legacy && c.Ask.Mode != Timed {
				return "is not a mode: write legacy or timed"
			}
			return ""
		}},
		{Key: "ask.timeout", Flag: "ask-timeout", Default: "120", Help: "seconds a timed question waits when the agent names none", set: func(c *Config, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > askTimeoutMax {
				return "is not a window: write whole seconds from 1 to " + strconv.Itoa(askTimeoutMax)
			}
			c.Ask.Timeout = time.Duration(n) * time.Second
			return ""
		}},
		{Key: "questions.max_hold", Flag: "max-hold", Default: "4h", Help: "longest a client may hold a timed question past its deadline (0 = no bound)", set: func(c *Config, v string) string {
			return duration(v, 0, &c.Questions.MaxHold)
		}},
		{Key: "model.provider", Flag: "provider", Help: "deepseek, openai or script (default: by the keys and files given)", set: func(c *Config, v string) string {
			switch v {
			case "", "deepseek", "openai", "script":
				c.Model.Provider = v
				return ""
			}
			return "is not a provider: write deepseek, openai or script"
		}},
		{Key: "model.base_url", Flag: "base-url", Help: "address of the model server, up to and with its version path", set: func(c *Config, v string) string {
			c.Model.BaseURL = v
			if u, err := url.Parse(v); v != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
				return "is not an address: write http://host:port/v1 or https://…"
			}
			return ""
		}},
		{Key: "model.name", Flag: "model", Help: "model name (default: the provider's)", set: func(c *Config, v string) string {
			c.Model.Name = v
			return ""
		}},
		{Key: "model.max_tokens", Flag: "max-tokens", Default: "0", Help: "longest model answer in tokens (0 = the provider's default)", set: func(c *Config, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || n > 1<<20 {
				return "is not a count: write a whole number from 0 to 1048576"
			}
			c.Model.MaxTokens = n
			return ""
		}},
		{Key: "model.script", Flag: "script", Help: "file of a scripted model, used instead of a real one", set: func(c *Config, v string) string {
			c.Model.Script = v
			return ""
		}},
		{Key: "bash.dir", Flag: "bash-dir", Help: "working directory of commands (default: the current one)", set: func(c *Config, v string) string {
			if v == "" {
				return ""
			}
			abs, err := filepath.Abs(v)
			if err != nil {
				return err.Error()
			}
			c.Bash.Dir = abs
			return ""
		}},
		{Key: "bash.timeout", Flag: "bash-timeout", Default: "2m", Help: "time of a command that names none", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.Bash.Timeout)
		}},
		{Key: "bash.timeout_max", Flag: "bash-timeout-max", Default: "10m", Help: "longest time a command may ask for", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.Bash.TimeoutMax)
		}},
		{Key: "web_fetch.timeout", Flag: "web-fetch-timeout", Default: "30s", Help: "time of a web page where the call names none", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.WebFetch.Timeout)
		}},
		{Key: "web_fetch.timeout_max", Flag: "web-fetch-timeout-max", Default: "2m", Help: "longest time a call may ask for a web page", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.WebFetch.TimeoutMax)
		}},
		{Key: "run_code.timeout", Flag: "run-code-timeout", Default: "30s", Help: "time of a program's computing where the call names none", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.RunCode.Timeout)
		}},
		{Key: "run_code.timeout_max", Flag: "run-code-timeout-max", Default: "5m", Help: "longest time a call may ask for a program's computing", set: func(c *Config, v string) string {
			return duration(v, time.Millisecond, &c.RunCode.TimeoutMax)
		}},
		{Key: "demo", Flag: "demo", Default: "false", Help: "answer with a scripted demonstration instead of a model", set: func(c *Config, v string) string {
			on, err := strconv.ParseBool(v)
			if err != nil {
				return "is not a switch: write true or false"
			}
			c.Demo = on
			return ""
		}},
	}
}

func defaultData(env func(string) (string, bool)) (string, error) {
	if dir, ok := xdg(env, "XDG_DATA_HOME", filepath.Join(".local", "share")); ok {
		return dir, nil
	}
	return "", errors.New("is unknown, as neither XDG_DATA_HOME nor HOME is set: give --data DIR")
}

func checkAddress(v string) string {
	const fix = "is not an address: write host:port, such as 127.0.0.1:7331"
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return fix
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fix
	}
	return ""
}

func duration(v string, least time.Duration, to *time.Duration) string {
	d, err := time.ParseDuration(v)
	if err != nil || d < least {
		if least == 0 {
			return "is not a duration: write one such as 90s or 4h, or 0"
		}
		return "is not a duration: write one such as 90s or 10m"
	}
	*to = d
	return ""
}

func toggle(v string, to *bool) string {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return "is not a switch: write true or false"
	}
	*to = on
	return ""
}

func webAddress(v string) string {
	if u, err := url.Parse(v); v != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return "is not an address: write https://…"
	}
	return ""
}

func list(v string) []string {
	var items []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
