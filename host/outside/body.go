package outside

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// bodyMax is the encoded size of one message that a response has room for. A
// reply holds its questions and is JSON within JSON, so it can be over that.
const bodyMax = 1<<20 - 16<<10

// tooLong stands in a reply that is over bodyMax by its answers alone.
const tooLong = "the answers are too long to be handed over here: read them with userQuestions/await"

// bodyOf is the JSON of a message as it is handed over. What a response has no
// room for is left out, the questions first, which the agent asked itself; the
// log keeps it all.
func bodyOf(m event.Message) []byte {
	body := m.Bytes()
	for _, long := range []string{"questions", "answers"} {
		if len(body) <= bodyMax {
			break
		}
		doc, err := value.ParseString(m.Text)
		if err != nil || doc.Kind() != value.Object {
			break
		}
		var kept []value.Member
		for _, member := range doc.Members() {
			if member.Name != long {
				kept = append(kept, member)
			}
		}
		if long == "answers" {
			kept = append(kept, value.Member{Name: "message", Value: value.OfString(tooLong)})
		}
		m.Raw, m.Text = nil, string(value.OfObject(kept...).Bytes())
		body = m.Bytes()
	}
	return body
}
