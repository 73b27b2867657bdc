package session

import (
	"fmt"
	"hash/crc32"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// State is what a log's events amount to, up to and without Next. A decision
// reads it and changes nothing in it.
type State struct {
	Header event.Header
	Next   int64 // seq of the next event
	Balance
	*projection.Set // Questions, Inbox, Replies

	lastTime int64
	lastSum  uint32 // CRC of event Next-1, to tie a checkpoint to its log

	newEvents, newBytes int // applied since the last checkpoint
}

func newState(h event.Header) *State {
	return &State{Header: h, Set: projection.NewSet(h)}
}

// Title is the header's, else the first words of the first message.
func (s *State) Title() string {
	if s.Header.Title != "" {
		return s.Header.Title
	}
	return s.Balance.Title
}

// External reports whether an outside agent drives the session.
func (s *State) External() bool { return s.Header.External() }

// apply folds one event, which must be the next. raw is its encoded form.
func (s *State) apply(e event.Event, raw []byte, d *projection.Delta) error {
	if e.Seq != s.Next {
		return fmt.Errorf("event has seq %d where %d is next", e.Seq, s.Next)
	}
	if err := s.Set.Apply(e, d); err != nil {
		return err
	}
	s.Balance.apply(e)
	s.Next++
	s.lastTime = e.Time
	s.lastSum = sumOf(raw)
	s.newEvents++
	s.newBytes += len(raw)
	return nil
}

func sumOf(raw []byte) uint32 { return crc32.ChecksumIEEE(raw) }

// checkpointVersion is raised whenever the shape or the meaning of any fold
// changes; older checkpoints are then rebuilt.
const checkpointVersion = 1

func (s *State) appendCheckpoint() []byte {
	var w value.Writer
	w.Begin()
	w.IntField("version", checkpointVersion)
	w.IntField("next", s.Next)
	w.IntField("sum", int64(s.lastSum))
	w.IntField("time", s.lastTime)
	w.Name("balance")
	s.Balance.appendState(&w)
	w.Name("folds")
	s.Set.AppendState(&w)
	w.End()
	return w.Bytes()
}

// parseCheckpoint reads a checkpoint strictly. sum is of the event before Next;
// the caller compares it with the log.
func parseCheckpoint(h event.Header, b []byte) (*State, bool) {
	v, err := value.Parse(b)
	if err != nil || v.Kind() != value.Object || len(v.Extra("version", "next", "sum", "time", "balance", "folds")) != 0 {
		return nil, false
	}
	r := strictReader{ok: true}
	s := &State{Header: h, Next: r.int(v, "next"), lastTime: r.int(v, "time")}
	sum := r.int(v, "sum")
	s.lastSum = uint32(sum)
	if r.int(v, "version") != checkpointVersion || !r.ok || s.Next <= 0 || int64(s.lastSum) != sum {
		return nil, false
	}
	if s.Balance, r.ok = parseBalance(v.Get("balance")); !r.ok {
		return nil, false
	}
	if s.Set, err = projection.ParseSet(h, v.Get("folds")); err != nil {
		return nil, false
	}
	return s, true
}
