package event

import (
	"errors"

	"meanwhile/shared/event/value"
)

// The event types. Any other type is refused on load unless the event carries
// "ignorable":true.
const (
	TypeTurnStart     = "turn/start"
	TypeTurnEnd       = "turn/end"
	TypeStepStart     = "step/start"
	TypeStepEnd       = "step/end"
	TypeRequestHeader = "request/header"
	TypeUserMessage   = "user/message"
	TypeAssistant     = "assistant/message"
	TypeToolCall      = "tool/call"
	TypeToolResult    = "tool/result"
	TypePTCDispatch   = "tool/ptc-dispatch"
	TypeSpliced       = "agent/inbox/spliced"
	TypeEndSeed       = "session/end-seed"
)

// Known reports whether this build knows the event type.
func Known(typ string) bool {
	switch typ {
	case TypeTurnStart, TypeTurnEnd, TypeStepStart, TypeStepEnd, TypeRequestHeader, TypeUserMessage,
		TypeAssistant, TypeToolCall, TypeToolResult, TypePTCDispatch, TypeSpliced, TypeEndSeed:
		return true
	}
	return false
}

// Version is the only header version this build reads.
const Version = 1

// Errors of the envelope.
var (
	ErrVersion     = errors.New("header: version is not 1: this log was written by another program version")
	ErrUnknownType = errors.New("event of an unknown type without \"ignorable\":true: this log was written by a newer program")
)

// Event is one recorded fact. Seq is from 0 without a gap; Time is Unix ms and
// may step back, only Seq orders. Data is one JSON object as recorded.
type Event struct {
	Seq       int64
	Time      int64
	Type      string
	Data      []byte
	Ignorable bool
	Extra     []value.Member // unknown members of the envelope
}

// Draft is an event not yet in a log; the log gives it seq and time.
type Draft struct {
	Type string
	Data []byte
}

// Header opens a log. InheritedEventCount is how many leading events a fork
// took from its parent: 0 for a log of its own.
type Header struct {
	Version             int64
	ID                  string
	CreatedAt           int64 // Unix ms
	Title               string
	CWD                 string
	ParentSession       string
	InheritedEventCount int64
	DelegationDepth     int64
	Agent               *Agent
	Key                 string // an outside agent's own name for the session
	Owner               string // id of the token that opened an outside session
	Archived            bool
	Extra               []value.Member // unknown members
}

// Agent says who drives a session; nil or kind "builtin" is this host's loop.
type Agent struct {
	Kind  string // "builtin" or "external"
	Name  string
	CWD   string
	Extra []value.Member
}

// KindExternal is the Agent.Kind of a session driven from outside.
const KindExternal = "external"

// External reports whether an outside agent drives the session.
func (h Header) External() bool { return h.Agent != nil && h.Agent.Kind == KindExternal }

// AppendEvent writes e as one JSON object without a newline.
func AppendEvent(b []byte, e Event) []byte {
	var w value.Writer
	w.Begin()
	w.IntField("seq", e.Seq)
	w.IntField("time", e.Time)
	w.StrField("type", e.Type)
	w.Name("data")
	w.Raw(e.Data)
	if e.Ignorable {
		w.BoolField("ignorable", true)
	}
	w.Extra(e.Extra)
	w.End()
	return append(b, w.Bytes()...)
}

// ParseEvent reads one event. An unknown type is ErrUnknownType unless it is
// ignorable.
func ParseEvent(line []byte) (Event, error) {
	v, err := value.Parse(line)
	if err != nil {
		return Event{}, err
	}
	f := fields{v: v, what: "event"}
	e := Event{Seq: f.int("seq", true), Time: f.int("time", true), Type: f.str("type", true), Ignorable: v.Get("ignorable").True()}
	data := v.Get("data")
	switch {
	case f.err != nil:
		return Event{}, f.err
	case e.Seq < 0:
		return Event{}, &FieldError{"event", "seq", "is negative"}
	case data.Kind() != value.Object:
		return Event{}, &FieldError{"event", "data", "is not an object"}
	case !Known(e.Type) && !e.Ignorable:
		return Event{}, ErrUnknownType
	}
	e.Data = data.Bytes()
	known := []string{"seq", "time", "type", "data"}
	if e.Ignorable {
		known = append(known, "ignorable")
	}
	e.Extra = v.Extra(known...)
	return e, nil
}

// AppendHeader writes h as one JSON object without a newline.
func AppendHeader(b []byte, h Header) []byte {
	var w value.Writer
	w.Begin()
	w.IntField("version", h.Version)
	w.StrField("id", h.ID)
	w.IntField("createdAt", h.CreatedAt)
	w.OptField("title", h.Title)
	w.OptField("cwd", h.CWD)
	w.OptField("parentSession", h.ParentSession)
	if h.InheritedEventCount > 0 {
		w.IntField("inheritedEventCount", h.InheritedEventCount)
	}
	if h.DelegationDepth > 0 {
		w.IntField("delegationDepth", h.DelegationDepth)
	}
	if h.Agent != nil {
		w.Name("agent")
		w.Begin()
		w.StrField("kind", h.Agent.Kind)
		w.OptField("name", h.Agent.Name)
		w.OptField("cwd", h.Agent.CWD)
		w.Extra(h.Agent.Extra)
		w.End()
	}
	w.OptField("key", h.Key)
	w.OptField("owner", h.Owner)
	if h.Archived {
		w.BoolField("archived", true)
	}
	w.Extra(h.Extra)
	w.End()
	return append(b, w.Bytes()...)
}

// ParseHeader reads a log's first line.
func ParseHeader(line []byte) (Header, error) {
	v, err := value.Parse(line)
	if err != nil {
		return Header{}, err
	}
	f := fields{v: v, what: "header"}
	h := Header{Version: f.int("version", true), ID: f.str("id", true), CreatedAt: f.int("createdAt", true),
		Title: f.str("title", false), CWD: f.str("cwd", false), ParentSession: f.str("parentSession", false),
		InheritedEventCount: f.int("inheritedEventCount", false), DelegationDepth: f.int("delegationDepth", false),
		Key: f.str("key", false), Owner: f.str("owner", false), Archived: v.Get("archived").True()}
	if a := v.Get("agent"); a.Kind() != value.Missing {
		af := fields{v: a, what: "header.agent"}
		h.Agent = &Agent{Kind: af.str("kind", true), Name: af.str("name", false), CWD: af.str("cwd", false),
			Extra: a.Extra("kind", "name", "cwd")}
		f.keep(af.err)
	}
	switch {
	case f.err != nil:
		return Header{}, f.err
	case h.Version != Version:
		return Header{}, ErrVersion
	case h.ID == "":
		return Header{}, &FieldError{"header", "id", "is empty"}
	case h.InheritedEventCount < 0 || h.DelegationDepth < 0:
		return Header{}, &FieldError{"header", "inheritedEventCount", "is negative"}
	}
	h.Extra = v.Extra("version", "id", "createdAt", "title", "cwd", "parentSession", "inheritedEventCount",
		"delegationDepth", "agent", "key", "owner", "archived")
	return h, nil
}

// FieldError names a field that cannot be read.
type FieldError struct{ What, Field, Why string }

func (e *FieldError) Error() string { return e.What + ": " + e.Field + " " + e.Why }

// fields reads typed members and keeps the first error.
type fields struct {
	v    value.Value
	what string
	err  error
}

func (f *fields) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) str(name string, need bool) string {
	m := f.v.Get(name)
	s, ok := m.Str()
	if !ok && (need || m.Kind() != value.Missing) {
		f.keep(&FieldError{f.what, name, "is not a string"})
	}
	return s
}

func (f *fields) int(name string, need bool) int64 {
	m := f.v.Get(name)
	n, ok := m.Int()
	if !ok && (need || m.Kind() != value.Missing) {
		f.keep(&FieldError{f.what, name, "is not a whole number"})
	}
	return n
}
