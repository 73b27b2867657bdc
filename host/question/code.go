package question

import "meanwhile/shared/projection"

// The codes of everything that can go wrong with an ask or an answer.
const (
	CodeEmptyQuestions  = projection.CodeEmptyQuestions
	CodeBadIntent       = projection.CodeBadIntent
	CodeBadTimeout      = projection.CodeBadTimeout
	CodeDuplicateWait   = "DUPLICATE_WAIT"
	CodeNotLive         = "CALLER_NOT_LIVE"
	CodeDelegated       = "DELEGATED_CALLER"
	CodeNoProvider      = "NO_PROVIDER"
	CodeAborted         = "ASK_ABORTED"
	CodeCancelled       = "ASK_CANCELLED"
	CodeTimedOut        = "ASK_TIMED_OUT"
	CodeWithdrawn       = "ASK_WITHDRAWN"
	CodeBadQuestions    = projection.CodeBadQuestions // over a limit or misshapen; the field says what
	CodeBadAnswer       = projection.CodeBadAnswer
	CodeReplyQueued     = "REPLY_QUEUED"
	CodeRequestConflict = "REQUEST_CONFLICT"
	CodeValidatorFailed = "VALIDATOR_FAILED"

	// What the gateway says of an event that it does not take.
	CodeTooMany  = "TOO_MANY_EVENTS"
	CodeTooLarge = "EVENT_TOO_LARGE"
)

// ErrorName is the name of every question error on the wire and in tool results.
const ErrorName = "UserQuestionError"

// Error is a refusal or a failure of an ask or an answer. Message is written
// for whoever called: the model for an ask, the person for an answer.
type Error struct {
	Code    string
	Field   string // what in the call is wrong, when one thing is
	Message string
}

func (e *Error) Error() string {
	if e.Field != "" {
		return e.Code + ": " + e.Field + ": " + e.Message
	}
	return e.Code + ": " + e.Message
}

// Is makes errors.Is compare the codes alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ForModel says what a code means to the agent that asked, and what to do next.
func ForModel(code string) string {
	switch code {
	case CodeEmptyQuestions:
		return "the call carried no question; send at least one"
	case CodeBadQuestions:
		return "the questions are not of the shape this tool takes; correct the field named and call again"
	case CodeBadIntent:
		return "a plan review needs one question whose detail holds the plan and whose intent names one of its own option labels, and it always blocks; send it without a timeout"
	case CodeBadTimeout:
		return "the timeout is not a whole number of milliseconds between 1 and 2147483647"
	case CodeDuplicateWait:
		return "this call is already waiting for its answer; do not ask again, the first ask still counts"
	case CodeNotLive:
		return "the agent that asked is no longer running, so nobody would read the answer"
	case CodeDelegated:
		return "a delegated agent cannot ask the user; put the question into your result so that the agent you work for can ask it"
	case CodeNoProvider:
		return "no one who can answer is reachable: every client handed the question back; nobody has answered or approved anything"
	case CodeAborted:
		return "the turn was cancelled while the question was open; nobody answered it"
	case CodeCancelled:
		return "the user closed the question without answering; this is neither an answer nor approval"
	case CodeTimedOut:
		return "nothing was answered in time; this is neither a skip nor permission"
	case CodeWithdrawn:
		return "you withdrew this question before it was answered"
	case CodeBadAnswer:
		return "the answer did not fit the questions and was not taken; the question is still open"
	case CodeReplyQueued:
		return "a reply to this question is already on its way to you as a user message"
	case CodeRequestConflict:
		return "this request id was used before with other questions; send the same questions, or a new request id"
	case CodeValidatorFailed:
		return "this host could not check the question, which is the host's fault and not yours; nothing was asked"
	case CodeTooMany:
		return "too many questions are open on this host; wait for answers, or withdraw questions that no longer matter"
	case CodeTooLarge:
		return "the questions are too large to be shown together; shorten them or ask in two calls"
	}
	return "the question failed with code " + code
}

// ForPerson says what a code means to the person who answers.
func ForPerson(code string) string {
	switch code {
	case CodeEmptyQuestions:
		return "The agent sent an empty question, so there is nothing to answer."
	case CodeBadQuestions:
		return "The agent sent a question that cannot be shown."
	case CodeBadIntent:
		return "The agent sent a plan review that cannot be shown as one."
	case CodeBadTimeout:
		return "The agent set a time limit that does not exist."
	case CodeDuplicateWait:
		return "The agent is already waiting for this very question."
	case CodeNotLive:
		return "The agent that asked is not running any more. Your answer was not sent."
	case CodeDelegated:
		return "A helper of the agent tried to ask you. Only the agent itself may."
	case CodeNoProvider:
		return "No screen that could show this question took it."
	case CodeAborted:
		return "The agent's turn was cancelled, so it no longer waits for this answer."
	case CodeCancelled:
		return "The question was closed without an answer."
	case CodeTimedOut:
		return "The agent stopped waiting and went on. You can still answer."
	case CodeWithdrawn:
		return "The agent took this question back."
	case CodeBadAnswer:
		return "The answer does not fit the questions. Check the marked field and send it again."
	case CodeReplyQueued:
		return "An answer to this question is already waiting for the agent to read it."
	case CodeRequestConflict:
		return "The agent used one request name for two different questions."
	case CodeValidatorFailed:
		return "The host could not check your answer. This is the host's fault; your answer was not taken and the question is still open."
	case CodeTooMany:
		return "Too many questions are open on this host, so this one was not shown."
	case CodeTooLarge:
		return "The question is too large to be shown."
	}
	return "The question ended with code " + code + "."
}

// modelError is a code with its text for the agent.
func modelError(code string) *Error { return &Error{Code: code, Message: ForModel(code)} }

// personError is a code with its text for the person.
func personError(code string) *Error { return &Error{Code: code, Message: ForPerson(code)} }
