package projection

// ordered is a map that keeps the order of insertion; every operation costs
// the same however many entries it holds.
type ordered[T any] struct {
	index      map[string]*node[T]
	head, tail *node[T]
}

type node[T any] struct {
	key        string
	val        T
	prev, next *node[T]
}

func (o *ordered[T]) len() int { return len(o.index) }

func (o *ordered[T]) get(key string) *T {
	if n := o.index[key]; n != nil {
		return &n.val
	}
	return nil
}

// put appends, after dropping any entry of that key.
func (o *ordered[T]) put(key string, val T) {
	o.drop(key)
	if o.index == nil {
		o.index = map[string]*node[T]{}
	}
	n := &node[T]{key: key, val: val, prev: o.tail}
	if o.tail == nil {
		o.head = n
	} else {
		o.tail.next = n
	}
	o.tail, o.index[key] = n, n
}

func (o *ordered[T]) drop(key string) bool {
	n := o.index[key]
	if n == nil {
		return false
	}
	if n.prev == nil {
		o.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		o.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	delete(o.index, key)
	return true
}

// all yields the values in order; the loop may drop the entry it stands at.
func (o *ordered[T]) all(yield func(string, *T) bool) {
	for n := o.head; n != nil; {
		next := n.next
		if !yield(n.key, &n.val) {
			return
		}
		n = next
	}
}
