// Package event is the vocabulary of a session log and its JSON codec.
//
// It owns the header, the envelope of an event, and one struct for each event
// type's data. It decides nothing: folds live in shared/projection, repair and
// storage in host/session.
//
// A log is JSON lines: the header first, then events whose seq starts at 0 and
// has no gap. Event.Data and Message.Raw keep the bytes as recorded, so unknown
// fields survive reading, moving and exporting. Decoders check the type of the
// fields they know and nothing else; the folds, which must read any log, go
// through [value.Value] directly.
package event
