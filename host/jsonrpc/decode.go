package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Unmarshal decodes one JSON text into v as strictly as a frame is decoded:
// no unknown or duplicate member, member names in their exact case. Types with
// their own UnmarshalJSON look after themselves.
func Unmarshal(data []byte, v any) error {
	if err := check(data); err != nil {
		return err
	}
	if err := exact(data, reflect.TypeOf(v), ""); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return plainly(dec.Decode(v))
}

// plainly names the member and what to send, instead of types of ours.
func plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	kind := wrong.Type.Kind()
	want := "another type"
	switch {
	case kind == reflect.String:
		want = "a string"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice || kind == reflect.Array:
		want = "an array"
	case kind == reflect.Struct || kind == reflect.Map:
		want = "an object"
	case kind == reflect.Float32 || kind == reflect.Float64:
		want = "a number"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		want = "a whole number that fits"
	}
	got := clip([]byte(strings.TrimPrefix(wrong.Value, "number ")))
	if wrong.Field == "" {
		return fmt.Errorf("send %s, not %s", want, got)
	}
	return fmt.Errorf("field %q: send %s, not %s", clip([]byte(wrong.Field)), want, got)
}

// Params decodes a request's params into v, absent ones as {}. Its error is a
// Fault that tells the caller what to send instead.
func Params(params json.RawMessage, v any) error {
	if params == nil {
		params = json.RawMessage("{}")
	}
	if err := Unmarshal(params, v); err != nil {
		return Faultf(CodeInvalidParams, "invalid params: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// exact refuses names that encoding/json would match in another case.
func exact(data []byte, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		if t.Implements(unmarshaler) {
			return nil
		}
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	var err error
	switch t.Kind() {
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		collect(t, fields)
		_, err = eachMember(data, func(name string, value json.RawMessage) error {
			field, ok := fields[name]
			if !ok {
				return fmt.Errorf("unknown field %q", clip([]byte(path+name)))
			}
			return exact(value, field, path+name+".")
		})
	case reflect.Slice, reflect.Array:
		_, err = eachItem(data, func(value json.RawMessage) error { return exact(value, t.Elem(), path) })
	case reflect.Map:
		_, err = eachMember(data, func(_ string, value json.RawMessage) error { return exact(value, t.Elem(), path) })
	}
	return err
}

func collect(t reflect.Type, fields map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				collect(inner, fields)
				continue
			}
		}
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
	}
}
