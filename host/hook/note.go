package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of notes.
const (
	noteMax      = 64 << 10            // bytes of one
	noteAge      = 30 * 24 * time.Hour // an agent session that was quiet for so long is over
	sweepMax     = 1000                // notes looked at in one sweep
	pendingMax   = 32                  // open asks remembered of one session; the oldest go
	givenMax     = 512                 // ids of one note
	reopenMax    = 8
	lockEvery    = 20 * time.Millisecond
	noteSuffix   = ".json"
	keyHashBytes = 16
)

// errBusy: another hook of the session is handing over.
var errBusy = errors.New("another hook of this session is at work")

// note is what hooks of one agent session leave to the next. It is a cache of
// what this side did: without it a message comes again, and never too few times.
type note struct {
	Given     []string      `json:"given,omitempty"`     // written, not acknowledged
	Announced []string      `json:"announced,omitempty"` // too long to write, named
	Pending   []pendingNote `json:"pending,omitempty"`   // asks that may still be answered
	Blocks    int           `json:"blocks,omitempty"`    // in a row

	file *os.File
	path string
}

type pendingNote struct {
	Questions string `json:"questions"`
	CallID    string `json:"callId"`
}

// openNote locks the note of a session for this process until close.
func openNote(dir, key string) (*note, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of notes: %w", err)
	}
	sum := sha256.Sum256([]byte(key))
	n := &note{path: filepath.Join(dir, hex.EncodeToString(sum[:keyHashBytes])+noteSuffix)}
	for range reopenMax {
		f, err := os.OpenFile(n.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("note: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, errBusy
			}
			return nil, fmt.Errorf("lock the note: %w", err)
		}
		// The one before may have removed the file between opening and locking.
		if now, err := os.Stat(n.path); err == nil {
			if mine, err := f.Stat(); err == nil && os.SameFile(now, mine) {
				n.file = f
				return n, n.read()
			}
		}
		_ = f.Close()
	}
	return nil, errBusy
}

// waitNote is openNote for who must have it, within a time.
func waitNote(dir, key string, within time.Duration) (*note, error) {
	for until := time.Now().Add(within); ; time.Sleep(lockEvery) {
		n, err := openNote(dir, key)
		if !errors.Is(err, errBusy) || time.Now().After(until) {
			return n, err
		}
	}
}

// read takes an unreadable note for an empty one: a process was killed amid it.
func (n *note) read() error {
	raw, err := io.ReadAll(io.LimitReader(n.file, noteMax))
	if err != nil {
		_ = n.file.Close()
		return fmt.Errorf("read the note: %w", err)
	}
	var was note
	if json.Unmarshal(raw, &was) == nil {
		n.Given, n.Announced, n.Pending, n.Blocks = was.Given, was.Announced, was.Pending, was.Blocks
	}
	return nil
}

func (n *note) empty() bool {
	return len(n.Given) == 0 && len(n.Announced) == 0 && len(n.Pending) == 0 && n.Blocks == 0
}

// save writes the note; one that says nothing is removed.
func (n *note) save() error {
	if n.empty() {
		return os.Remove(n.path)
	}
	n.Given, n.Announced = last(n.Given, givenMax), last(n.Announced, givenMax)
	n.Pending = last(n.Pending, pendingMax)
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := n.file.Truncate(0); err != nil {
		return err
	}
	if _, err := n.file.WriteAt(raw, 0); err != nil {
		return err
	}
	sweep(filepath.Dir(n.path), time.Now())
	return nil
}

func (n *note) close() { _ = n.file.Close() } // which unlocks it

func last[T any](items []T, limit int) []T {
	return items[max(0, len(items)-limit):]
}

// pendingAsk is the open ask with these questions, or "".
func (n *note) pendingAsk(questions string) string {
	for _, p := range n.Pending {
		if p.Questions == questions {
			return p.CallID
		}
	}
	return ""
}

func (n *note) keepPending(questions, callID string) {
	n.dropPending(callID)
	n.Pending = append(n.Pending, pendingNote{questions, callID})
}

func (n *note) dropPending(callID string) {
	n.Pending = slices.DeleteFunc(n.Pending, func(p pendingNote) bool { return p.CallID == callID })
}

// sweep removes the notes of sessions that are long over.
func sweep(dir string, now time.Time) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(sweepMax) // a part of them is as good
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), noteSuffix) && now.Sub(info.ModTime()) > noteAge {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next sweep tries again
		}
	}
}
