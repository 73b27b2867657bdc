package httpserver

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"meanwhile/host/auth"
)

// kindOf is the content type of a page's file. A file of another kind is
// not served: nosniff would make it useless, and it is not the page's.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".wasm":
		return "application/wasm"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return ""
}

// asset is one file in memory.
type asset struct {
	name  string
	kind  string
	tag   string
	fixed bool // its name holds its hash
	body  []byte
	zip   []byte // gzip of body; nil when it does not pay
}

func loadAssets(page fs.FS, module []byte) (map[string]*asset, error) {
	assets := map[string]*asset{}
	err := fs.WalkDir(page, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || kindOf(name) == "" {
			return err
		}
		body, err := fs.ReadFile(page, name)
		if err != nil {
			return err
		}
		// Vite puts a content hash into the names below assets.
		assets["/"+name], err = newAsset(name, body, strings.HasPrefix(name, "assets/"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load the page: %w", err)
	}
	if index := assets["/index.html"]; index != nil {
		assets["/"] = index
	}
	assets["/client.wasm"], err = newAsset("client.wasm", module, false)
	return assets, err
}

func newAsset(name string, body []byte, fixed bool) (*asset, error) {
	sum := sha256.Sum256(body)
	a := &asset{name: name, kind: kindOf(name), tag: `"` + hex.EncodeToString(sum[:]) + `"`, fixed: fixed, body: body}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(body); err != nil {
		return nil, fmt.Errorf("compress %s: %w", name, err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress %s: %w", name, err)
	}
	if out.Len() < len(body)*9/10 {
		a.zip = out.Bytes()
	}
	return a, nil
}

func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request, _ *auth.Token) {
	a := s.static[r.URL.Path]
	if a == nil {
		if r.URL.Path == "/" {
			plain(w, http.StatusServiceUnavailable, "this program was built without its page: run make build")
			return
		}
		plain(w, http.StatusNotFound, "there is nothing here")
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if a.fixed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	tag, body := a.tag, a.body
	if a.zip != nil && acceptsGzip(r) {
		// Another encoding is another representation and needs a tag of its own.
		tag, body = strings.TrimSuffix(a.tag, `"`)+`-gzip"`, a.zip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
