package askuser

const commonDescription = "Ask the user up to 16 questions at once and get their answers. Use it for a decision that is the " +
	"user's to make, not for what you can find out yourself. Offer options where you can; the user may always write " +
	"an own answer instead. If you recommend an option, put it first and end its label with \"(Recommended)\". A question without " +
	"options asks for free text. An answer with nothing selected and no custom text means that the user skipped that question. "

const legacyDescription = commonDescription + "The call waits until the user has answered."

const timedDescription = commonDescription + "The call waits for the given time. A result with \"pending\": true means that " +
	"nobody has answered yet: that is neither an answer nor permission. The question stays open, and the reply comes later as a " +
	"user message with the call's id."

const withdrawDescription = "Take back a question of yours that is still unanswered, because it no longer matters. The user will not be " +
	"able to answer it any more. The result says whether it was taken back; it was not if an answer came first."

// The schemas hold no list of types: some models refuse {"type":["array","null"]}.
const questionsSchema = `{"type":"array","description":"1 to 16 questions, shown to the user together.","items":{"type":"object",` +
	`"properties":{` +
	`"id":{"type":"string","description":"A short name of your own, unique in this call. The answer carries it."},` +
	`"question":{"type":"string","description":"The full question."},` +
	`"header":{"type":"string","description":"A title of a few words, at most 80 characters."},` +
	`"options":{"type":"array","description":"Up to 64 answers to choose from. Leave it out to ask for free text.",` +
	`"items":{"type":"object","properties":{` +
	`"label":{"type":"string","description":"The answer as the user sees it and as you get it back; unique in its question."},` +
	`"description":{"type":"string","description":"What choosing it means."}},` +
	`"required":["label"]}},` +
	`"multi_select":{"type":"boolean","description":"Whether the user may choose several options. Default: false."}},` +
	`"required":["id","question"]}}`

const legacySchema = `{"type":"object","properties":{"questions":` + questionsSchema + `},"required":["questions"]}`

// 2147483 is projection.TimeoutMaxSeconds; a test keeps the two together.
const timedSchema = `{"type":"object","properties":{"questions":` + questionsSchema + `,` +
	`"timeout":{"type":"integer","description":"How many whole seconds to wait for all answers together, from 1 to 2147483; ` +
	`-1 waits until the user answers. Leave it out for the usual wait."}},"required":["questions"]}`

const withdrawSchema = `{"type":"object","properties":{"callId":{"type":"string",` +
	`"description":"The id of the ask_user_question call to take back; its pending result names it."}},"required":["callId"]}`
