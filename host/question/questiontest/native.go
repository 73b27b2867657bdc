package questiontest

import (
	"context"

	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// Native is a question.Validator without the module.
type Native struct{}

// CheckAsk checks a batch in the wire's spelling.
func (Native) CheckAsk(_ context.Context, questions []byte) (*projection.Problem, error) {
	v, err := value.Parse(questions)
	if err != nil {
		return nil, err
	}
	qs, p := projection.QuestionsOfWire(v)
	if p == nil {
		p = projection.CheckAsk(qs, false)
	}
	return p, nil
}

// CheckAnswer checks {"answers":[…]} against a batch.
func (Native) CheckAnswer(_ context.Context, questions, answer []byte) (*projection.Problem, error) {
	v, err := value.Parse(questions)
	if err != nil {
		return nil, err
	}
	qs, p := projection.QuestionsOfWire(v)
	if p != nil {
		return p, nil
	}
	if v, err = value.Parse(answer); err != nil {
		return &projection.Problem{Code: projection.CodeBadAnswer, Message: err.Error()}, nil
	}
	_, p = projection.CheckAnswer(qs, v)
	return p, nil
}
