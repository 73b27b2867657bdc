package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func envOf(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	got, err := Load(Sources{Env: envOf("HOME", "/home/ada")})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Listen:    "127.0.0.1:7331",
		Data:      "/home/ada/.local/share/meanwhile",
		Log:       slog.LevelInfo,
		LogFormat: Text,
		Ask:       Ask{Mode: Legacy, Timeout: 120 * time.Second},
		Questions: Questions{MaxHold: 4 * time.Hour},
		Notify:    Notify{Delay: 10 * time.Second},
		Bash:      Bash{Timeout: 2 * time.Minute, TimeoutMax: 10 * time.Minute},
		WebFetch:  Limit{Timeout: 30 * time.Second, TimeoutMax: 2 * time.Minute},
		RunCode:   Limit{Timeout: 30 * time.Second, TimeoutMax: 5 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestOrderOfSources(t *testing.T) {
	file := writeFile(t, "[ask]\ntimeout = 1\nmode = \"timed\"\n[http]\nhosts = [\"a.example\", \"b.example\"]\n")
	for _, tc := range []struct {
		name string
		src  Sources
		want time.Duration
	}{
		{"default", Sources{Env: envOf("HOME", "/h")}, 120 * time.Second},
		{"file", Sources{Env: envOf("HOME", "/h"), File: file}, 1 * time.Second},
		{"file by environment", Sources{Env: envOf("HOME", "/h", "MEANWHILE_CONFIG", file)}, 1 * time.Second},
		{"environment over file", Sources{Env: envOf("HOME", "/h", "MEANWHILE_ASK_TIMEOUT", "2"), File: file}, 2 * time.Second},
		{"flag over all", Sources{Env: envOf("HOME", "/h", "MEANWHILE_ASK_TIMEOUT", "2"), File: file, Flags: map[string]string{"ask.timeout": "3"}}, 3 * time.Second},
		{"refused value below is not read", Sources{Env: envOf("HOME", "/h", "MEANWHILE_ASK_TIMEOUT", "x"), Flags: map[string]string{"ask.timeout": "3"}}, 3 * time.Second},
	} {
		got, err := Load(tc.src)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got.Ask.Timeout != tc.want {
			t.Errorf("%s: ask.timeout = %v, want %v", tc.name, got.Ask.Timeout, tc.want)
		}
		if tc.src.File != "" && (got.Ask.Mode != Timed || len(got.HTTP.Hosts) != 2) {
			t.Errorf("%s: the rest of the file is not read: %+v", tc.name, got)
		}
	}
}

func TestDataDirectory(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  []string
		want string
	}{
		{"xdg", []string{"HOME", "/h", "XDG_DATA_HOME", "/x"}, "/x/meanwhile"},
		{"relative xdg is ignored", []string{"HOME", "/h", "XDG_DATA_HOME", "x"}, "/h/.local/share/meanwhile"},
		{"given", []string{"MEANWHILE_DATA", "/d"}, "/d"},
	} {
		got, err := Load(Sources{Env: envOf(tc.env...)})
		if err != nil || got.Data != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, got.Data, err, tc.want)
		}
	}
	if _, err := Load(Sources{Env: envOf()}); err == nil || !strings.Contains(err.Error(), "--data DIR") {
		t.Errorf("without HOME: %v, want the fix", err)
	}
}

func TestDataDirIgnoresOtherSettings(t *testing.T) {
	got, err := DataDir(Sources{Env: envOf("HOME", "/h", "MEANWHILE_ASK_TIMEOUT", "x", "MEANWHILE_DATA", "/d")})
	if err != nil || got != "/d" {
		t.Errorf("DataDir = %q, %v", got, err)
	}
}

func TestModelIsChosenByWhatIsGiven(t *testing.T) {
	for _, tc := range []struct {
		name  string
		env   []string
		flags map[string]string
		want  Model
	}{
		{name: "nothing", want: Model{}},
		{name: "deepseek key", env: []string{"DEEPSEEK_API_KEY", "k"}, want: Model{Provider: "deepseek", APIKey: "k"}},
		{name: "openai key", env: []string{"OPENAI_API_KEY", "k"}, want: Model{Provider: "openai", APIKey: "k"}},
		{name: "both keys", env: []string{"OPENAI_API_KEY", "o", "DEEPSEEK_API_KEY", "d"}, want: Model{Provider: "deepseek", APIKey: "d"}},
		{name: "own server", flags: map[string]string{"model.base_url": "http://127.0.0.1:1234/v1"}, want: Model{Provider: "openai", BaseURL: "http://127.0.0.1:1234/v1"}},
		{name: "script over keys", env: []string{"DEEPSEEK_API_KEY", "k"}, flags: map[string]string{"model.script": "s.jsonl"}, want: Model{Provider: "script", Script: "s.jsonl"}},
		{name: "demo over keys", env: []string{"DEEPSEEK_API_KEY", "k"}, flags: map[string]string{"demo": "true"}, want: Model{Provider: "script"}},
		{name: "provider said", env: []string{"OPENAI_API_KEY", "o", "DEEPSEEK_API_KEY", "d"}, flags: map[string]string{"model.provider": "openai"}, want: Model{Provider: "openai", APIKey: "o"}},
	} {
		got, err := Load(Sources{Env: envOf(append(tc.env, "HOME", "/h")...), Flags: tc.flags})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got.Model); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestRefusedValuesNameKeySourceAndFix(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  string
		text string
		fix  string
	}{
		{"address without port", "listen", "127.0.0.1", "write host:port"},
		{"port too large", "listen", "127.0.0.1:70000", "write host:port"},
		{"empty data", "data", "", "name a directory"},
		{"level", "log", "loud", "debug, info, warn or error"},
		{"log format", "log_format", "xml", "text or json"},
		{"mode", "ask.mode", "Timed", "legacy or timed"},
		{"zero window", "ask.timeout", "0", "1 to 2147483"},
		{"fraction", "ask.timeout", "1.5", "1 to 2147483"},
		{"window past the timers", "ask.timeout", "2147484", "1 to 2147483"},
		{"duration with unit", "ask.timeout", "2m", "1 to 2147483"},
		{"hold without unit", "questions.max_hold", "4", "such as 90s or 4h, or 0"},
		{"negative hold", "questions.max_hold", "-1s", "or 0"},
		{"provider", "model.provider", "gpt", "deepseek, openai or script"},
		{"provider without key", "model.provider", "deepseek", "DEEPSEEK_API_KEY"},
		{"script without file", "model.provider", "script", "model.script"},
		{"base url", "model.base_url", "127.0.0.1:1234", "http://"},
		{"tokens", "model.max_tokens", "-1", "whole number"},
		{"bash timeout", "bash.timeout", "0", "such as 90s"},
		{"bash limits crossed", "bash.timeout", "1h", "raise it"},
		{"tls alone", "http.tls_cert", "c.pem", "http.tls_key"},
		{"host with path", "http.hosts", "a.example,http://b/", "no host name"},
		{"origin with path", "http.origins", "https://a.example/x", "no origin"},
		{"origin wildcard", "http.origins", "https://*.example", "no origin"},
		{"switch", "demo", "maybe", "true or false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var setting Setting
			for _, s := range Settings() {
				if s.Key == tc.key {
					setting = s
				}
			}
			file := writeFile(t, fmt.Sprintf("%s = %q\n", tc.key, tc.text))
			for source, src := range map[string]Sources{
				"flag --" + setting.Flag:       {Env: envOf("HOME", "/h"), Flags: map[string]string{tc.key: tc.text}},
				"environment " + setting.Env(): {Env: envOf("HOME", "/h", setting.Env(), tc.text)},
				"file " + file:                 {Env: envOf("HOME", "/h"), File: file},
			} {
				_, err := Load(src)
				var refused *Error
				if !errors.As(err, &refused) {
					t.Fatalf("%s: %v, want a *Error", source, err)
				}
				text := err.Error()
				for _, part := range []string{tc.key, source, tc.fix} {
					if !strings.Contains(text, part) {
						t.Errorf("%q does not name %q", text, part)
					}
				}
			}
		})
	}
}

func TestBadFile(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"syntax", "listen = \n", "line 1"},
		{"unknown key", "lissen = \"x\"\n", `unknown setting "lissen"`},
		{"unknown key in a table", "[ask]\ntimeuot = 1\n", `unknown setting "ask.timeuot"`},
		{"table for a value", "[listen]\nx = 1\n", "listen"},
		{"date", "listen = 2026-01-01\n", "listen"},
		{"list of numbers", "[http]\nhosts = [1]\n", "list of strings"},
	} {
		path := writeFile(t, tc.text)
		_, err := Load(Sources{Env: envOf("HOME", "/h"), File: path})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q and the path", tc.name, err, tc.want)
		}
	}
	if _, err := Load(Sources{Env: envOf("HOME", "/h"), File: "/no/such/file"}); err == nil {
		t.Error("a named file that is missing is no error")
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	c, err := Load(Sources{Env: envOf("HOME", "/h", "DEEPSEEK_API_KEY", "hush-hush")})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "key", c.Model.APIKey)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.Model.APIKey.String(), log.String()} {
		if strings.Contains(text, "hush") {
			t.Errorf("the key shows in %s", text)
		}
	}
	if c.Model.APIKey.Reveal() != "hush-hush" {
		t.Error("the key is lost")
	}
}
