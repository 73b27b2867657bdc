// Package web holds the built page and hands it to the host as a file tree.
//
// It owns the embedding and nothing else: which path serves which file, caching,
// compression and security headers belong to the HTTP server. The page itself lives
// beside this file in TypeScript and is built into dist by `npm run build`; dist is not
// in the repository, so a host built before the page embeds an empty tree and Built
// reports false.
//
// The tree is read-only and safe for concurrent use.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the built page, rooted at its index.html.
func Files() fs.FS {
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // the name is a constant of this file
	}
	return root
}

// Built reports whether the page was built before the host was.
func Built() bool {
	_, err := fs.Stat(dist, "dist/index.html")
	return err == nil
}
