package webfetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What a page may have for its main content to be looked for and set as
// markdown. Both take more than linear time and cannot be stopped half-way: a
// hundred kilobytes of list in list in list kept them busy for a minute, and
// seventy bytes of table with a colspan for three.
const (
	nodesMax  = 30_000
	textMax   = 1 << 20
	indentMax = 12     // lists, quotes and tables within each other
	cellsMax  = 20_000 // all rows, each as wide as the widest
)

// errNesting: the parser refuses what would overflow the stack of all that
// follows.
var errNesting = errors.New("the page is nested too deep to be read")

// readable gives the title and the markdown of an HTML page.
func readable(ctx context.Context, body []byte, at *url.URL) (title, text string, err error) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return "", "", errNesting
	}
	title = titleOf(doc)
	if intricate(doc) {
		return title, plain(doc), nil
	}
	content := doc
	parser := readability.NewParser()
	parser.DisableJSONLD = true // it may claim any title
	// The parser changes the tree it is given.
	if again, err := html.Parse(bytes.NewReader(body)); err == nil && !intricate(again) {
		if article, err := parser.ParseDocument(again, at); err == nil && article.Node != nil {
			content = article.Node
			if s := strings.TrimSpace(article.Title()); s != "" {
				title = s
			}
		}
	}
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	convert := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := convert.ConvertNode(content, converter.WithDomain(at.String()))
	if err != nil {
		return title, plain(doc), nil
	}
	return title, string(out), nil
}

// intricate reports whether a page is over one of the bounds above, and takes
// away what makes a cell count as many. The parser has bounded the depth that
// this goes to.
func intricate(doc *html.Node) bool {
	nodes, text, indent, rows, widest := 0, 0, 0, 0, 0
	var walk func(n *html.Node) bool
	walk = func(n *html.Node) bool {
		nodes++
		if n.Type == html.TextNode {
			text += len(n.Data)
		}
		switch n.DataAtom {
		case atom.Ul, atom.Ol, atom.Dl, atom.Blockquote, atom.Table:
			indent++
			defer func() { indent-- }()
		case atom.Tr:
			cells := 0
			for range n.ChildNodes() {
				cells++
			}
			rows, widest = rows+1, max(widest, cells)
		}
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" })
		if nodes > nodesMax || text > textMax || indent > indentMax || rows*widest > cellsMax {
			return true
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if walk(c) {
				return true
			}
		}
		return false
	}
	return walk(doc)
}

func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.Namespace == "" && n.FirstChild != nil {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	return ""
}

// plain is all text of a page, a line for each block, in linear time.
func plain(doc *html.Node) string {
	var b strings.Builder
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && !hidden(n.Parent):
			b.WriteString(strings.Join(strings.Fields(n.Data), " "))
			b.WriteByte(' ')
		case n.Type == html.ElementNode && block(n.DataAtom):
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func hidden(n *html.Node) bool {
	if n == nil {
		return false
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Title, atom.Textarea, atom.Iframe:
		return true
	}
	return false
}

func block(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Li, atom.Tr, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Section, atom.Article, atom.Pre, atom.Blockquote, atom.Table, atom.Ul, atom.Ol, atom.Header, atom.Footer, atom.Nav:
		return true
	}
	return false
}

// clean leaves out what a person would not see, or what would act on a
// terminal or on the direction of text, and folds runs of empty lines.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == 0x200C || r == 0x200D { // the last two join letters in Persian, and emoji
			return r
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || invisible(r) {
			return -1
		}
		return r
	}, s)
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(s) {
		if strings.TrimSpace(line) == "" {
			empty++
			continue
		}
		if empty > 0 && b.Len() > 0 {
			b.WriteByte('\n')
		}
		empty = 0
		b.WriteString(strings.TrimRight(line, " \t\n"))
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

// invisible are characters without a picture that are no format characters by
// name: variation selectors can carry whole hidden messages.
func invisible(r rune) bool {
	switch {
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164, r == 0xFFA0:
		return true
	case r >= 0xFE00 && r <= 0xFE0E, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

// cut bounds a text and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + fmt.Sprintf("\n[the rest of the page, %d more bytes, is left out]", len(s)-n)
}
