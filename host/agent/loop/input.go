package loop

// Call is one tool call of a reply, under the id it is recorded with.
type Call struct{ ID, Name, Arguments string }

// Outcome is what a call came to. Code is empty unless IsError.
type Outcome struct {
	Text    string
	Meta    []byte
	IsError bool
	Name    string // the error's family, such as ToolError
	Code    string
}

// End is why a model call stopped.
type End uint8

const (
	// EndStop: the reply is whole.
	EndStop End = iota
	// EndLength: the reply ran into its token limit; a call in it may be cut.
	EndLength
	// EndFailed: the stream failed or was cancelled.
	EndFailed
)

// Reason is how a turn ended, as turn/end records it: a Kind of package event,
// never TurnInterrupted, which is the work of repair.
type Reason struct{ Kind, Message string }

// errorName is the family of the errors this package gives a call.
const errorName = "ToolError"

// Codes this machine gives by itself, beside event.CodeNotStarted and
// event.CodeOutcomeUnknown.
const (
	CodeStepLimit = "STEP_LIMIT"
	CodeCallLimit = "CALL_LIMIT"
)

// Input is one thing that happened. The types below are all there are.
type Input interface{ input() }

type (
	// Start asks for a turn. Only in Idle.
	Start struct{}
	// Opened: a step is on disk, its first request may go out. Turn and step as recorded.
	Opened struct{ Turn, Step int64 }
	// NotOpened: there was nothing to start a turn for.
	NotOpened struct{}
	// Replied: the model call ended. Reason is read when End is EndFailed and
	// nobody cancelled.
	Replied struct {
		End    End
		Text   bool // something a person could read came
		Calls  []Call
		Reason Reason
	}
	// Done: a call that RunCall started came back.
	Done struct {
		ID      string
		Outcome Outcome
	}
	// Ended: the end of the turn is on disk.
	Ended struct{}
	// Cancel asks the turn to end as aborted.
	Cancel struct{ Reason string }
	// Overdue: the tools of this step had their time to heed the cancellation.
	Overdue struct{ Turn, Step int64 }
)

func (Start) input()     {}
func (Opened) input()    {}
func (NotOpened) input() {}
func (Replied) input()   {}
func (Done) input()      {}
func (Ended) input()     {}
func (Cancel) input()    {}
func (Overdue) input()   {}

// Effect is one thing the shell must do, in order. The types below are all there are.
type Effect interface{ effect() }

type (
	// OpenTurn: record turn/start, the admissions and the first step/start.
	// Answered by Opened or NotOpened.
	OpenTurn struct{}
	// AskModel: send the request of the open step. Answered by Replied.
	AskModel struct{ Turn, Step int64 }
	// StopModel: cancel the model call; Replied still comes.
	StopModel struct{}
	// RecordReply: record the assistant's message. Whole says that its calls
	// belong to it; else only what was text is kept.
	RecordReply struct{ Whole, Interrupted bool }
	// RunCall: record the call, then, once it is on disk, run it. Answered by Done.
	RunCall struct{ Call Call }
	// RecordResult: record a call's result.
	RecordResult struct {
		Call    Call
		Outcome Outcome
	}
	// StopCalls: cancel every running call and send Overdue after the grace.
	StopCalls struct{ Reason string }
	// BoundStep: record step/end and, as the log's state says under its lock,
	// the next step with its admissions or the end of the turn. More says that
	// the model must be asked again even if no message waits; Last that the
	// turn ends here even if one does. Answered by Opened or Ended.
	BoundStep struct{ More, Last bool }
	// EndTurn: record step/end and turn/end. Answered by Ended.
	EndTurn struct{ Reason Reason }
)

func (OpenTurn) effect()     {}
func (AskModel) effect()     {}
func (StopModel) effect()    {}
func (RecordReply) effect()  {}
func (RunCall) effect()      {}
func (RecordResult) effect() {}
func (StopCalls) effect()    {}
func (BoundStep) effect()    {}
func (EndTurn) effect()      {}
