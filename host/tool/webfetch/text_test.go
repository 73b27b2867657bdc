package webfetch

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// Nothing in a text acts on a terminal, turns its direction or hides, and what
// was cleaned once is clean.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\x1b]0;x\x07b", "\u202eabc\u202c", "\r\n\r\r\n x \n\n\n\ny\n", "\xff\xfe", "سلام\u200cها", "👩\u200d👧", "\U000e0041\ufe01\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := clean(s)
		if !utf8.ValidString(out) || strings.Contains(out, "\n\n\n") {
			t.Errorf("clean(%q) = %q", s, out)
		}
		for _, r := range out {
			if r != '\n' && r != '\t' && unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
				t.Errorf("clean(%q) holds %U", s, r)
			}
		}
		if again := clean(out); again != out {
			t.Errorf("clean is %q first and %q then", out, again)
		}
	})
}

// Pages made to keep the conversion busy. Each took from seconds to minutes
// before it was bounded; the limit here is far from what they take now.
func TestIntricatePages(t *testing.T) {
	at, err := url.Parse("https://example.com/a/")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, page string }{
		{"quotes in quotes", strings.Repeat("<blockquote>", 400) + strings.Repeat("x\n<br>", 15_000)},
		{"lists in lists", strings.Repeat("<ul><li>", 200) + strings.Repeat("<li>x", 24_000)},
		{"as deep as it is taken", strings.Repeat("<blockquote>", indentMax) + strings.Repeat("x\n<br>", 9_000)},
		{"a wide cell", "<table><tr><td colspan=1000>x<tr><td rowspan=65534 colspan=1000>y</table>"},
		{"a wide and long table", "<table><tr>" + strings.Repeat("<td>1", 5000) + strings.Repeat("<tr><td>x", 5000) + "</table>"},
		{"much to escape", strings.Repeat("*_[](", 400_000)},
		{"formatting that never ends", strings.Repeat("<b><p>", 300_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			_, text, err := readable(t.Context(), []byte(tt.page), at)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 30*time.Second || len(text) > 16<<20 {
				t.Errorf("took %v for %d bytes", took, len(text))
			}
		})
	}
}
