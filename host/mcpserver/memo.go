package mcpserver

import "slices"

// memoMax bounds the asks remembered; a repeated call of a forgotten one makes
// another ask.
const memoMax = 256

// memo remembers under which request id questions were asked whose answer the
// client does not surely have, so that the same questions sent again are the
// same ask. Its owner locks.
type memo struct{ asks []asked }

type asked struct{ questions, requestID, callID string }

// request finds the id of these questions, or draws one.
func (m *memo) request(questions string, draw func() string) string {
	for _, a := range m.asks {
		if a.questions == questions {
			return a.requestID
		}
	}
	if len(m.asks) >= memoMax {
		m.asks = slices.Delete(m.asks, 0, 1)
	}
	id := draw()
	m.asks = append(m.asks, asked{questions: questions, requestID: id})
	return id
}

// named notes which ask a request became.
func (m *memo) named(requestID, callID string) {
	for i := range m.asks {
		if m.asks[i].requestID == requestID {
			m.asks[i].callID = callID
		}
	}
}

// settled forgets a request: the same questions are a new ask from now on.
func (m *memo) settled(requestID string) {
	m.asks = slices.DeleteFunc(m.asks, func(a asked) bool { return a.requestID == requestID })
}

// settledCall is settled by the ask's id.
func (m *memo) settledCall(callID string) {
	m.asks = slices.DeleteFunc(m.asks, func(a asked) bool { return a.callID != "" && a.callID == callID })
}
