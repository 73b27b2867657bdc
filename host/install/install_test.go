package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func options(t *testing.T, agent string, scope Scope) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{
		Agent: agent, Scope: scope, Command: "meanwhile", Window: 2 * time.Minute,
		Place: Place{Home: filepath.Join(dir, "home"), Dir: filepath.Join(dir, "shop")},
	}
}

func mustInstall(t *testing.T, o Options) Plan {
	t.Helper()
	p, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	return p
}

func mustUninstall(t *testing.T, o Options) Plan {
	t.Helper()
	p, err := Uninstall(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	return p
}

// tree is every file below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// settings are what users have in the files before, with what an edit could hurt.
func settings() map[string]string {
	return map[string]string{
		"empty":    "",
		"object":   "{}",
		"spaces":   "{\n}\n",
		"one line": `{"theme":"dark","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}`,
		"comments": "// mine\n{\n\t\"theme\": \"dark\", // night\n\t\"hooks\": {\n\t\t// every end\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }, // spoken\n\t\t],\n\t\t\"stop\": [],\n\t},\n\t/* servers */\n\t\"mcpServers\": {\n\t\t\"files\": { \"command\": \"files\" } // all\n\t\t// more to come\n\t}\n}\n",
		"unknown":  "{\n    \"x\": {\"y\": [1.50, 1e3, null]},\n    \"mcp\": {},\n    \"version\": 1\n}\n",
	}
}

// Installing twice is installing once; uninstalling gives every byte back.
func TestEveryAgentInBothScopes(t *testing.T) {
	for _, agent := range Agents() {
		for _, scope := range []Scope{User, Project} {
			for name, text := range settings() {
				t.Run(agent+" "+string(scope)+" "+name, func(t *testing.T) {
					o := options(t, agent, scope)
					a, _ := agentOf(agent)
					root := filepath.Dir(o.Place.Home)
					for _, f := range a.files(o.Place, scope) {
						if !f.toml {
							save(t, f.path, text)
						} else {
							save(t, f.path, "model = \"m\" # mine\n[mcp_servers.files]\ncommand = \"files\"")
						}
					}
					before := tree(t, root)

					if missing, any, err := Missing(o); err != nil || any || len(missing) != len(before) {
						t.Fatalf("before: missing %v, any %v, %v", missing, any, err)
					}
					mustInstall(t, o)
					installed := tree(t, root)
					if again, err := Install(o); err != nil || len(again.Changes) != 0 {
						t.Fatalf("the second installation changes\n%s%v", again.Diff(), err)
					}
					if missing, any, err := Missing(o); err != nil || !any || len(missing) != 0 {
						t.Errorf("after: missing %v, any %v, %v", missing, any, err)
					}
					for path, was := range before {
						if installed[path+BackupSuffix] != was {
							t.Errorf("the text before of %s was not kept", path)
						}
						// What was there is still there, in its order.
						if !strings.HasSuffix(path, ".toml") {
							keepsLines(t, was, installed[path])
						} else if !strings.HasPrefix(installed[path], was) {
							t.Errorf("%s lost text:\n%s", path, installed[path])
						}
					}

					mustUninstall(t, o)
					if d := cmp.Diff(before, tree(t, root)); d != "" {
						t.Errorf("after uninstall (-want +got):\n%s", d)
					}
					if again, err := Uninstall(o); err != nil || len(again.Changes) != 0 {
						t.Errorf("the second uninstall changes\n%s%v", again.Diff(), err)
					}
				})
			}
		}
	}
}

// keepsLines checks that every word of a text is in another, in order: commas
// may have been added.
func keepsLines(t *testing.T, was, now string) {
	t.Helper()
	rest := now
	for _, word := range strings.FieldsFunc(was, func(c rune) bool { return strings.ContainsRune(" \t\r\n,{}[]", c) }) {
		i := strings.Index(rest, word)
		if i < 0 {
			t.Fatalf("%q is lost or out of order in\n%s", word, now)
		}
		rest = rest[i+len(word):]
	}
}

// What the user changed after installing stays.
func TestUninstallKeepsLaterChanges(t *testing.T) {
	for _, agent := range Agents() {
		for name, text := range settings() {
			t.Run(agent+" "+name, func(t *testing.T) {
				o := options(t, agent, User)
				a, _ := agentOf(agent)
				targets := a.files(o.Place, User)
				for _, f := range targets {
					if !f.toml {
						save(t, f.path, text)
					}
				}
				mustInstall(t, o)
				for _, f := range targets {
					src, err := os.ReadFile(f.path)
					if err != nil {
						t.Fatal(err)
					}
					if f.toml {
						save(t, f.path, string(src)+"later = true\n")
						continue
					}
					if src, err = put(src, []string{"later"}, json.RawMessage("true")); err != nil {
						t.Fatal(err)
					}
					save(t, f.path, string(src))
				}
				mustUninstall(t, o)
				for _, f := range targets {
					got, err := os.ReadFile(f.path)
					if err != nil {
						t.Fatal(err)
					}
					if bytes.Contains(got, []byte("meanwhile")) {
						t.Errorf("something of ours is left:\n%s", got)
					}
					if f.toml {
						if string(got) != "later = true\n" {
							t.Errorf("got %q", got)
						}
						continue
					}
					want := decoded(t, text)
					want["later"] = true
					if name == "empty" { // the boilerplate of a new file stays with a changed one
						for _, m := range f.first {
							want[m.name] = decodedValue(t, string(m.doc))
						}
					}
					if d := cmp.Diff(want, decoded(t, string(got))); d != "" {
						t.Errorf("(-want +got):\n%s\n%s", d, got)
					}
				}
			})
		}
	}
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	v, _ := decodedValue(t, text).(map[string]any)
	if v == nil {
		v = map[string]any{}
	}
	return v
}

func decodedValue(t *testing.T, text string) any {
	t.Helper()
	n, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return n.decode([]byte(text))
}

// A file that was not there is gone again, with nothing beside it.
func TestNewFilesGoAway(t *testing.T) {
	for _, agent := range Agents() {
		t.Run(agent, func(t *testing.T) {
			o := options(t, agent, Project)
			mustInstall(t, o)
			if len(tree(t, o.Place.Dir)) == 0 {
				t.Fatal("nothing was written")
			}
			mustUninstall(t, o)
			if d := cmp.Diff(map[string]string{}, tree(t, o.Place.Dir)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Golden: what a fresh installation writes, for review against the agents' docs.
func TestGolden(t *testing.T) {
	for _, agent := range Agents() {
		t.Run(agent, func(t *testing.T) {
			o := options(t, agent, Project)
			mustInstall(t, o)
			var got strings.Builder
			files := tree(t, o.Place.Dir)
			a, _ := agentOf(agent)
			for _, f := range a.files(o.Place, Project) {
				rel, _ := filepath.Rel(o.Place.Dir, f.path)
				got.WriteString("-- " + filepath.ToSlash(rel) + " --\n" + files[filepath.ToSlash(rel)])
			}
			golden(t, filepath.Join("testdata", agent+".golden"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		save(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestReplacesAnOlderVersion(t *testing.T) {
	o := options(t, "claude-code", Project)
	mustInstall(t, o)
	path := filepath.Join(o.Place.Dir, ".claude", "settings.json")
	// Somebody put another hook beside ours.
	src, _ := os.ReadFile(path)
	save(t, path, strings.Replace(string(src), `"hooks": [`, `"hooks": [ {"type":"command","command":"mine"},`, 1))
	o.Window = 10 * time.Minute
	mustInstall(t, o)
	got, _ := os.ReadFile(path)
	if n := bytes.Count(got, []byte("meanwhile hook claude-code")); n != 5 {
		t.Errorf("%d commands of ours, want 5:\n%s", n, got)
	}
	if !bytes.Contains(got, []byte("--window 10m0s")) || bytes.Contains(got, []byte("--window 2m0s")) || !bytes.Contains(got, []byte(`"mine"`)) {
		t.Errorf("got\n%s", got)
	}
	mustUninstall(t, o)
	got, _ = os.ReadFile(path)
	want := decodedValue(t, `{"hooks":{"PreToolUse":[{"matcher":"AskUserQuestion","hooks":[{"type":"command","command":"mine"}]}]}}`)
	if d := cmp.Diff(want, decodedValue(t, string(got))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name, agent, path, text string
		want                    string
		is                      error
	}{
		{name: "another's server", agent: "cursor", path: ".cursor/mcp.json", text: `{"mcpServers":{"meanwhile":{"command":"other"}}}`, is: errForeign},
		{name: "another's table", agent: "codex", path: ".codex/config.toml", text: "[mcp_servers.meanwhile]\ncommand = \"other\"\n", is: errForeign},
		{name: "no object", agent: "cursor", path: ".cursor/mcp.json", text: `[]`, is: errShape},
		{name: "no list", agent: "cursor", path: ".cursor/hooks.json", text: `{"hooks":{"stop":{}}}`, is: errShape},
		{name: "hooks is a text", agent: "gemini", path: ".gemini/settings.json", text: `{"hooks":"x"}`, is: errShape},
		{name: "broken", agent: "gemini", path: ".gemini/settings.json", text: "{\n\"a\":,}", want: "line 2"},
		{name: "cut", agent: "gemini", path: ".gemini/settings.json", text: `{"a":1`, want: "comma"},
		{name: "deep", agent: "gemini", path: ".gemini/settings.json", text: strings.Repeat("[", 100), want: "deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t, tc.agent, Project)
			path := filepath.Join(o.Place.Dir, filepath.FromSlash(tc.path))
			save(t, path, tc.text)
			_, err := Install(o)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v %q with the file's name", err, tc.is, tc.want)
			}
			if got, _ := os.ReadFile(path); string(got) != tc.text {
				t.Errorf("the file was changed to\n%s", got)
			}
		})
	}
}

func TestApplyRefusesAFileThatWasWrittenMeanwhile(t *testing.T) {
	o := options(t, "cursor", Project)
	p, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	save(t, p.Changes[0].Path, `{"mine":true}`)
	if err := p.Apply(); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want %v", err, ErrChanged)
	}
}

func TestKeepsModeAndLink(t *testing.T) {
	o := options(t, "cursor", User)
	target := filepath.Join(o.Place.Home, "dotfiles", "hooks.json")
	save(t, target, `{}`)
	link := filepath.Join(o.Place.Home, ".cursor", "hooks.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, o)
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want 0640", info.Mode(), err)
	}
}

// The two versions of opencode keep servers in two places.
func TestOpencodeVersions(t *testing.T) {
	for _, tc := range []struct {
		name, text, version string
		path                []string
	}{
		{name: "new", text: `{}`, path: []string{"mcp", "servers", "meanwhile"}},
		{name: "new, second installed", text: `{}`, version: "2.0.3\n", path: []string{"mcp", "servers", "meanwhile"}},
		{name: "new, first installed", text: `{"mcp":{}}`, version: "1.14.0\n", path: []string{"mcp", "meanwhile"}},
		{name: "the file decides", text: `{"mcp":{"servers":{"x":{"type":"local","command":["x"]}}}}`, version: "1.14.0", path: []string{"mcp", "servers", "meanwhile"}},
		{name: "second", text: `{"mcp":{"servers":{}}}`, path: []string{"mcp", "servers", "meanwhile"}},
		{name: "first", text: `{"mcp":{"files":{"type":"local","command":["files"]}}}`, path: []string{"mcp", "meanwhile"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t, "opencode", Project)
			o.Place.Version = func(string) string { return tc.version }
			path := filepath.Join(o.Place.Dir, "opencode.json")
			save(t, path, tc.text)
			mustInstall(t, o)
			src, _ := os.ReadFile(path)
			root, err := parse(src)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := root.at(tc.path).decode(src).(map[string]any)
			if d := cmp.Diff([]any{"meanwhile", "mcp"}, got["command"]); d != "" {
				t.Errorf("(-want +got):\n%s\n%s", d, src)
			}
			if again, err := Install(o); err != nil || len(again.Changes) != 0 {
				t.Errorf("the second installation changes\n%s%v", again.Diff(), err)
			}
			mustUninstall(t, o)
			if got, _ := os.ReadFile(path); string(got) != tc.text {
				t.Errorf("uninstalled: %s", got)
			}
		})
	}
}

func TestCommandWithAPath(t *testing.T) {
	o := options(t, "claude-code", User)
	o.Command, o.Args = "/opt/my tools/meanwhile", []string{"--data", "/srv/it's"}
	mustInstall(t, o)
	got, _ := os.ReadFile(filepath.Join(o.Place.Home, ".claude", "settings.json"))
	if want := `'/opt/my tools/meanwhile' hook claude-code --data '/srv/it'\\''s' --window 2m0s`; !strings.Contains(string(got), want) {
		t.Errorf("%s is not in\n%s", want, got)
	}
	mustUninstall(t, o)
	if len(tree(t, o.Place.Home)) != 0 {
		t.Errorf("left: %v", tree(t, o.Place.Home))
	}
}

func TestDiff(t *testing.T) {
	p := Plan{Changes: []Change{
		{Path: "a", Before: []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"), After: []byte("1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16")},
		{Path: "b", After: []byte("new\n")},
		{Path: "c", Before: []byte("old\n")},
	}}
	want := "--- a\n+++ a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -13,3 +13,4 @@\n 13\n 14\n 15\n+16\n\\ No newline at end of file\n" +
		"--- /dev/null\n+++ b\n@@ -0,0 +1,1 @@\n+new\n--- c\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-old\n"
	if d := cmp.Diff(want, p.Diff()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Whatever is in a settings file, editing it gives JSON again and taking the
// edit out gives the same value.
func FuzzEdit(f *testing.F) {
	for _, text := range settings() {
		f.Add(text)
	}
	f.Add("{\"hooks\":{\"Stop\":[ // c\n {\"a\":1}]}}")
	f.Add("/**/")
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Agent: "claude-code", Scope: User, Command: "meanwhile", Window: time.Minute}
		target := claude().files(Place{}, User)[0]
		src := []byte(text)
		root, err := parse(src)
		if err != nil {
			return
		}
		if bare, err := o.strip(target, src, nil); err != nil || !bytes.Equal(bare, src) {
			return // it has entries like ours
		}
		out, err := o.apply(target, src)
		if err != nil {
			return // of another shape
		}
		again, err := o.apply(target, out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("twice is not once: %v\n%s", err, out)
		}
		back, err := o.strip(target, out, func(path []string) bool { return root.at(path) != nil })
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		n, err := parse(back)
		if err != nil {
			t.Fatalf("%v in\n%s", err, back)
		}
		want := root.decode(src)
		if want == nil {
			want = map[string]any{}
		}
		if d := cmp.Diff(want, n.decode(back)); d != "" {
			t.Fatalf("(-want +got):\n%s\n%q", d, back)
		}
	})
}
