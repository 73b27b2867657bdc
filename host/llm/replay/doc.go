// Package replay is a model that follows a script: for demonstrations without
// a key, and for tests of everything above the model.
//
// It owns: the script format, the choice of a rule, and the pace of a reply.
//
// It does not own: any state. A rule is chosen by what the request contains and
// by nothing else, so a script does the same after a restart, in a fork, and
// however many sessions run it at once.
//
// # Script
//
// JSON, strict. The first rule whose conditions all hold is played; when none
// does, the error says what the last message looked like.
//
//	{"name":"demo","rules":[
//	  {"when":{"last":"user","reply":false,"contains":"database"},
//	   "do":[{"text":"I will ask. "},
//	         {"call":"ask_user_question","arguments":{"questions":[…],"timeout":20}}]},
//	  {"when":{"tool":"ask_user_question","pending":true},
//	   "do":[{"text":"Carrying on."},{"call":"bash","arguments":{"command":"ls"}}]},
//	  {"when":{"reply":true},
//	   "do":[{"waitMs":300},{"text":"So it is {{answer \"store\"}}."}]}
//	]}
//
// Conditions, all about the last message of the request unless said otherwise:
//
//	last      "user" or "tool"
//	source    the kind of the user message's source
//	reply     it is (or is not) a late answer to a question
//	tool      it is the result of this tool
//	pending   it is (or is not) a result that says pending
//	failed    it is (or is not) a result that is an error
//	contains  its text contains this, in any case
//	matches   its text matches this regular expression
//	called    these tools were called since the last prompt (a user message
//	          that is no late answer)
//	uncalled  these were not
//	earlier   some earlier message contains this, in any case
//
// Steps: text, reasoning (both templates), call with arguments (strings in
// them are templates) and an optional id, waitMs, error (a kind such as
// "LLM_SERVER"), finish (a reason such as "max-tokens"; without it the response
// finishes by itself, with tool-calls if there were calls). A text with paceMs
// comes word by word, that far apart.
//
// Templates are those of text/template with the functions last (the text of
// the last message), output (of the last tool result), prompt (of the last
// prompt), answer "id" (what was chosen or written for a question, from the
// newest answer in the request; "(skipped)" for a skip), answers (all of them
// as "id: value" joined by "; ") and callId (of the ask they answer).
//
// Concurrency: a Model is immutable and may stream concurrently.
//
// Limits: maxScript bytes, maxRules rules, maxSteps steps a rule.
package replay
