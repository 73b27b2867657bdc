package session

import "errors"

// valueKeyMax and valueMax bound one keyed value.
const (
	valueKeyMax = 512
	valueMax    = 64 << 10
)

var errBadValue = errors.New("value needs a kind of 1 to 64 characters, a key of at most 512 and data of 1 byte to 64 KiB")

// Values is the small durable area beside the sessions, for the hashes of
// tokens for instance. It is not for anything that a log holds.
type Values struct{ s *Store }

// Values returns the area.
func (s *Store) Values() Values { return Values{s} }

// Put stores a value and returns once it is on disk.
func (v Values) Put(kind, key string, data []byte) error {
	if len(data) == 0 {
		return errBadValue
	}
	return v.write(kind, key, data)
}

// Delete removes a value, if there is one, and returns once that is on disk.
func (v Values) Delete(kind, key string) error { return v.write(kind, key, nil) }

func (v Values) write(kind, key string, data []byte) error {
	if kind == "" || len(kind) > 64 || len(key) > valueKeyMax || len(data) > valueMax {
		return errBadValue
	}
	land := newLanding()
	v.s.backend.Write(Batch{Values: []Value{{kind, key, data}}}, func(err error) {
		if err != nil {
			land.err = v.s.failed("store "+kind+" value", err)
		}
		close(land.done)
	})
	<-land.done
	return land.err
}

// Get reads a value, nil when there is none.
func (v Values) Get(kind, key string) ([]byte, error) { return v.s.backend.Get(kind, key) }

// Each calls fn for all values of a kind, in the order of their keys. fn must
// not write.
func (v Values) Each(kind string, fn func(key string, data []byte) error) error {
	return v.s.backend.Each(kind, fn)
}
