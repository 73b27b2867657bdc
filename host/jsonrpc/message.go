package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Limits of one message.
const (
	// MaxFrame is the largest frame, either way.
	MaxFrame = 1 << 20
	// MaxID is the longest string id, MaxMethod the longest method name.
	MaxID     = 128
	MaxMethod = 128
	// maxInt is the largest whole number every JSON reader agrees on.
	maxInt = 1<<53 - 1
)

// ID names a call: a string or a whole number. The zero ID is none.
type ID struct {
	text  string
	num   int64
	isNum bool
}

// IntID and StringID make ids.
func IntID(n int64) ID       { return ID{num: n, isNum: true} }
func StringID(s string) ID   { return ID{text: s} }
func (id ID) IsZero() bool   { return id == ID{} }
func (id ID) String() string { return string(id.append(nil)) }

// Text returns a string id, and false for a number.
func (id ID) Text() (string, bool) { return id.text, !id.isNum && id.text != "" }

func (id ID) append(dst []byte) []byte {
	switch {
	case id.isNum:
		return strconv.AppendInt(dst, id.num, 10)
	case id.text == "":
		return append(dst, "null"...)
	}
	return appendText(dst, id.text)
}

func parseID(raw json.RawMessage) (ID, bool) {
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || s == "" || len(s) > MaxID {
			return ID{}, false
		}
		return StringID(s), true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n > maxInt || n < -maxInt || string(raw) == "-0" {
		return ID{}, false
	}
	return IntID(n), true
}

// Message is one frame: a call (ID and Method), a notification (Method), or a
// response (ID with Result or Error).
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage // an object, or nil when absent
	Result json.RawMessage
	Error  *Error
}

// ParseMessage decodes one frame. The error is a *FrameError.
func ParseMessage(frame []byte) (*Message, error) {
	if len(frame) > MaxFrame {
		return nil, &FrameError{Close: CloseTooBig, Message: "over " + strconv.Itoa(MaxFrame) + " bytes"}
	}
	if err := check(frame); err != nil {
		return nil, err
	}
	m, version := &Message{}, false
	isObject, err := eachMember(frame, func(name string, value json.RawMessage) error {
		switch name {
		case "jsonrpc":
			version = string(value) == `"2.0"`
		case "id":
			var ok bool
			if m.ID, ok = parseID(value); !ok {
				return badFrame("id must be a string of 1 to %d bytes or a whole number", MaxID)
			}
		case "method":
			if err := json.Unmarshal(value, &m.Method); err != nil || m.Method == "" || len(m.Method) > MaxMethod {
				return badFrame("method must be a string of 1 to %d bytes", MaxMethod)
			}
		case "params":
			if value[0] != '{' {
				return badFrame("params must be an object")
			}
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			var err error
			m.Error, err = ParseError(value)
			return err
		default:
			return badFrame("unknown member %q", clip([]byte(name)))
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !isObject:
		return nil, badFrame("a message is one object")
	case !version:
		return nil, badFrame(`member "jsonrpc" must be "2.0"`)
	}
	if fault := m.shape(); fault != "" {
		return nil, badFrame("%s", fault)
	}
	return m, nil
}

func (m *Message) shape() string {
	outcome := m.Result != nil || m.Error != nil
	switch {
	case m.Method != "" && outcome:
		return "both a method and an outcome"
	case m.Method == "" && !outcome:
		return "neither a method nor an outcome"
	case m.Result != nil && m.Error != nil:
		return "both a result and an error"
	case outcome && m.Params != nil:
		return "params in a response"
	case outcome && m.ID.IsZero():
		return "a response without an id"
	}
	return ""
}

// ParseError decodes the error object of a response, strictly. The error is a
// *FrameError.
func ParseError(data []byte) (*Error, error) {
	if err := check(data); err != nil {
		return nil, err
	}
	e, code, message := &Error{}, false, false
	isObject, err := eachMember(data, func(name string, value json.RawMessage) error {
		switch name {
		case "code":
			n, err := strconv.ParseInt(string(value), 10, 32)
			e.Code, code = int(n), err == nil
		case "message":
			message = json.Unmarshal(value, &e.Message) == nil && value[0] == '"'
		case "data":
			e.Data = value
		default:
			return badFrame("unknown member %q in error", clip([]byte(name)))
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !isObject, !code, !message:
		return nil, badFrame("error must be {code, message, data?} with a whole code and a text message")
	}
	return e, nil
}

// EncodeCall returns the frame of a call. Params must be an encoded object, or
// nil.
func EncodeCall(id ID, method string, params json.RawMessage) []byte {
	return appendRequest(id, method, params)
}

// EncodeNotice returns the frame of a notification.
func EncodeNotice(method string, params json.RawMessage) []byte {
	return appendRequest(ID{}, method, params)
}

// EncodeCancel returns the frame that cancels the call id.
func EncodeCancel(id ID) []byte {
	return EncodeNotice(methodCancel, append(id.append([]byte(`{"id":`)), '}'))
}

// EncodeResult returns the frame that answers id with an encoded result.
func EncodeResult(id ID, result json.RawMessage) []byte {
	b := make([]byte, 0, len(result)+64)
	b = append(id.append(append(b, `{"jsonrpc":"2.0","id":`...)), `,"result":`...)
	return append(append(b, result...), '}')
}

// EncodeFault returns the frame that answers id with an error. The zero id,
// for a request whose id could not be read, is sent as null.
func EncodeFault(id ID, f *Fault) []byte {
	b := make([]byte, 0, len(f.Message)+len(f.Data)+96)
	b = append(id.append(append(b, `{"jsonrpc":"2.0","id":`...)), `,"error":{"code":`...)
	b = append(strconv.AppendInt(b, int64(f.Code), 10), `,"message":`...)
	b = appendText(b, f.Message)
	if f.Data != nil {
		b = append(append(b, `,"data":`...), f.Data...)
	}
	return append(b, "}}"...)
}

func appendRequest(id ID, method string, params json.RawMessage) []byte {
	b := make([]byte, 0, len(method)+len(params)+len(id.text)+64)
	b = append(b, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() {
		b = id.append(append(b, `,"id":`...))
	}
	b = appendText(append(b, `,"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// Encode returns v as compact JSON that leaves <, > and & as they are.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// appendText appends s as a JSON string with the fewest escapes, so that a
// chunk's size on the wire stays within twice its text.
func appendText(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
