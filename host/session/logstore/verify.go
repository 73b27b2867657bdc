package logstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"

	"meanwhile/host/session"
)

// Report says what a store that did not open with full checks still holds.
type Report struct {
	Cause  string          // why the full checks refused it
	Aside  string          // the copy made first; removed again when Intact
	Faults []session.Fault // one for each damaged session
	Known  []session.Fault // the same, but found by an earlier open

	// What the tally counted and nothing accounts for. Sessions that are gone
	// whole and events gone from the end of a log leave no other trace.
	MissingSessions, MissingEvents int64
	NoTally                        bool // the tally itself is gone

	// Unreadable is the first bad block or record that belongs to no session.
	Unreadable string

	// Journal names a journal that is damaged before its end. What it held from
	// there on was on disk and is missing, which no count can show: the counts
	// were in it too.
	Journal string

	found tally
}

// Intact reports that nothing is newly missing: the ordinary torn end of a killed
// process, whose last writes were never acknowledged.
func (r *Report) Intact() bool {
	return len(r.Faults) == 0 && r.MissingSessions == 0 && r.MissingEvents == 0 && !r.NoTally && r.Unreadable == "" && r.Journal == ""
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The store did not open with full checks: %s.\n", r.Cause)
	if r.Intact() {
		b.WriteString("Every record that was counted is there and matches its checksum.")
		return b.String()
	}
	fmt.Fprintf(&b, "Copy from before: %s\n%s", r.Aside, r.Missing())
	return b.String()
}

// Missing lists what is, one line each; "" when the store is intact.
func (r *Report) Missing() string {
	var b strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "- session %s: seq %d: %s\n", f.Session, f.Seq, f.Reason)
	}
	if len(r.Known) > 0 {
		fmt.Fprintf(&b, "- %d sessions were known to be damaged\n", len(r.Known))
	}
	if r.NoTally {
		b.WriteString("- the count of sessions and events is gone, so whole sessions may be missing\n")
	}
	if r.MissingSessions != 0 {
		fmt.Fprintf(&b, "- %d sessions more were counted than are there\n", r.MissingSessions)
	}
	if r.MissingEvents != 0 {
		fmt.Fprintf(&b, "- %d events more were counted than are there\n", r.MissingEvents)
	}
	if r.Unreadable != "" {
		fmt.Fprintf(&b, "- unreadable: %s\n", r.Unreadable)
	}
	if r.Journal != "" {
		fmt.Fprintf(&b, "- the journal %s: the last changes before the stop are missing, also of sessions that look whole\n", r.Journal)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// logCheck is what verify knows of one session.
type logCheck struct {
	header  bool
	count   int64 // as its summary says; -1: no readable summary
	events  int64 // found in order
	fault   *session.Fault
	damaged string // mark of an earlier open
}

type checker struct {
	logs   map[string]*logCheck
	doomed map[string]bool
	tally  *tally
	format bool
	bad    string
}

// verify reads every record there is.
func (r *Report) verify(db *leveldb.DB) error {
	c := checker{logs: make(map[string]*logCheck), doomed: make(map[string]bool)}
	// Past a bad block there may be good ones, however the database was opened.
	it := db.NewIterator(nil, &opt.ReadOptions{DontFillCache: true, Strict: opt.StrictOverride | lenient})
	for it.Next() {
		c.record(it.Key(), it.Value())
	}
	err := it.Error()
	it.Release()
	if err != nil {
		return err
	}
	if len(c.logs) > 0 && !c.format && c.bad == "" {
		c.bad = "format version"
	}
	// The same again with checks on block reads: bytes that the first pass
	// skipped without a word show here.
	strict := db.NewIterator(nil, &opt.ReadOptions{DontFillCache: true, Strict: opt.StrictReader})
	for strict.Next() {
	}
	if err := strict.Error(); err != nil && c.bad == "" {
		c.bad = err.Error()
	}
	strict.Release()
	c.conclude(r)
	return nil
}

func (c *checker) log(id string) *logCheck {
	l := c.logs[id]
	if l == nil {
		l = &logCheck{count: -1}
		c.logs[id] = l
	}
	return l
}

func (c *checker) record(key, stored []byte) {
	if key[0] == kindFormat {
		c.format = true
		return
	}
	value, err := unseal(key, stored)
	id := string(key[1:])
	switch key[0] {
	case kindEvent:
		c.event(key, err)
	case kindHeader:
		c.log(id).header = err == nil
	case kindSummary:
		if err == nil {
			if n, _, serr := splitSummary(value); serr == nil {
				c.log(id).count = n
			}
		}
	case kindDamage:
		c.log(id).damaged = string(value)
	case kindDoomed:
		c.doomed[id] = true
	case kindTally:
		if err == nil {
			if t, terr := parseTally(value); terr == nil {
				c.tally = &t
			}
		}
	case kindCheckpoint: // a cache
	default:
		if err != nil && c.bad == "" {
			c.bad = fmt.Sprintf("record %q: %v", key, err)
		}
	}
}

func (c *checker) event(key []byte, sealErr error) {
	id, seq, ok := eventOf(key)
	if !ok {
		if c.bad == "" {
			c.bad = fmt.Sprintf("record %q", key)
		}
		return
	}
	l := c.log(id)
	switch {
	case l.fault != nil:
	case seq != l.events:
		l.fault = &session.Fault{Session: id, Seq: l.events, Reason: fmt.Sprintf("events %d to %d are missing", l.events, seq-1)}
	case sealErr != nil:
		l.fault = &session.Fault{Session: id, Seq: seq, Reason: sealErr.Error()}
	default:
		l.events++
	}
}

func (c *checker) conclude(r *Report) {
	for id, l := range c.logs {
		if c.doomed[id] {
			continue
		}
		r.found.sessions++
		if l.count >= 0 {
			r.found.events += l.count
		}
		f := l.fault
		switch {
		case l.damaged != "":
			r.Known = append(r.Known, session.Fault{Session: id, Seq: l.events, Reason: l.damaged})
			continue
		case f != nil:
		case !l.header:
			f = &session.Fault{Session: id, Seq: -1, Reason: "header is missing"}
		case l.count < 0:
			f = &session.Fault{Session: id, Seq: l.events, Reason: "summary is missing: events after this one may be too"}
		case l.count != l.events:
			f = &session.Fault{Session: id, Seq: l.events, Reason: fmt.Sprintf("log ends here, its summary counts %d events", l.count)}
		}
		if f != nil {
			r.Faults = append(r.Faults, *f)
		}
	}
	slices.SortFunc(r.Faults, func(a, b session.Fault) int { return strings.Compare(a.Session, b.Session) })
	switch {
	case c.tally != nil:
		r.MissingSessions = c.tally.sessions - r.found.sessions
		r.MissingEvents = c.tally.events - r.found.events
	case len(c.logs) > 0 || !c.format:
		// A new store has a format version before it has a tally.
		r.NoTally = true
	}
	r.Unreadable = c.bad
}

// Verify reads every record there is, with every check, and says what is
// missing. Report.Cause is empty when the store opened with full checks.
func (s *Store) Verify() (*Report, error) {
	r := &Report{}
	if s.report != nil {
		r.Cause, r.Aside = s.report.Cause, s.report.Aside
	}
	if err := r.verify(s.db); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return r, nil
}

// scan reads what a listing reads, so that a bad block there is found by Open.
func (s *Store) scan() error {
	err := s.Sessions(func(rec session.Record) error {
		if rec.Damage != "" && !s.marked(rec.ID) {
			return asCorrupted(errors.New("session " + rec.ID + ": " + rec.Damage))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return nil
}

func (s *Store) marked(id string) bool {
	has, err := s.db.Has(idKey(kindDamage, id), nil)
	return err == nil && has
}
