package bash

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// capture keeps the beginning and the end of a stream of output.
type capture struct {
	headMax, tailMax int

	mu    sync.Mutex
	head  []byte
	tail  []byte // the newest; may hold up to twice tailMax between trims
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if room := c.headMax - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if c.tail = append(c.tail, p...); len(c.tail) > 2*c.tailMax {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.tailMax:]...)
	}
	return n, nil
}

// text is what was kept, with a note where something is missing.
func (c *capture) text() (s string, missing int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail[max(0, len(c.tail)-c.tailMax):]
	missing = c.total - int64(len(c.head)) - int64(len(tail))
	if missing == 0 {
		return valid(string(c.head) + string(tail)), 0
	}
	return join(c.head, missing, tail), missing
}

// since is the output after the first seen bytes, as far as it was kept, and
// how many bytes there have been.
func (c *capture) since(seen int64) (s string, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.total - seen
	kept := c.tail[max(0, len(c.tail)-c.tailMax):]
	if fresh <= int64(len(kept)) {
		return valid(string(kept[int64(len(kept))-fresh:])), c.total
	}
	return join(nil, fresh-int64(len(kept)), kept), c.total
}

// join puts the note between the two ends. Characters that our own limits cut
// in two are left out as well, and counted.
func join(head []byte, missing int64, tail []byte) string {
	h, t := head, tail
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(h); r == utf8.RuneError && n == 1 {
			h = h[:len(h)-1]
		}
		if len(t) > 0 && !utf8.RuneStart(t[0]) {
			t = t[1:]
		}
	}
	missing += int64(len(head) - len(h) + len(tail) - len(t))
	text := valid(string(h))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + fmt.Sprintf("[… %d bytes left out …]\n", missing) + valid(string(t))
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
