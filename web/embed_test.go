package web_test

import (
	"io/fs"
	"testing"

	"meanwhile/web"
)

// The tree must open without the page as well, or a fresh checkout could not build a host.
func TestFilesMatchesBuilt(t *testing.T) {
	_, err := fs.Stat(web.Files(), "index.html")
	if got, want := err == nil, web.Built(); got != want {
		t.Errorf("index.html present: got %v, want %v", got, want)
	}
	if _, err := fs.Stat(web.Files(), ".gitkeep"); err != nil {
		t.Errorf("the tree has lost its .gitkeep, so an unbuilt checkout would not compile: %v", err)
	}
}
