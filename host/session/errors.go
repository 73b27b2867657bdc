package session

import "errors"

// What callers branch on.
var (
	// ErrNoSession: no session has this id, or it was deleted (NO_SESSION).
	ErrNoSession = errors.New("no such session")
	// ErrDamaged: the log is unreadable from some event on and takes no append
	// (SESSION_DAMAGED). *Fault says where.
	ErrDamaged = errors.New("the session's log is damaged: it can be read up to the fault, forked or deleted, and takes nothing new")
	// ErrResync: the follower asked for events after the log's end (RESYNC).
	ErrResync = errors.New("after is past the end of the log: follow again without it")
	// ErrForkAt: a fork was asked for at an event that is not there.
	ErrForkAt = errors.New("at names no event of the session: send the seq of one it has, -1 for none, or leave it out for all")
	// ErrLagged: the follower fell too far behind; it follows again by after.
	ErrLagged = errors.New("follower fell behind: follow again from the last seq")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("session store is closed")
	// ErrUnknown: a write failed. Whether its batch is on disk is not known,
	// and the process must stop.
	ErrUnknown = errors.New("write failed, its outcome is unknown")
	// ErrTooLarge: one change is over maxChangeBytes.
	ErrTooLarge = errors.New("change is too large for one batch")
	// ErrBadTitle: a title is over maxTitle characters or holds control
	// characters.
	ErrBadTitle = errors.New("title must be at most 200 characters without control characters")
)
