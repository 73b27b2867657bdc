package question

// EventID is what the emitter calls the event that carries the ask, for a client
// that settles it by another road than its delivery; "" while it is not out.
func (w *Wait) EventID() (id string) {
	w.svc.update(func(Instant) {
		if named, ok := w.event.(interface{ ID() string }); ok {
			id = named.ID()
		}
	})
	return id
}
