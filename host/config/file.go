package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// parseTOML flattens a file to key → text. It refuses keys that are no
// setting, so that a misspelled one is not silently without effect.
func parseTOML(raw []byte) (map[string]string, error) {
	var tree map[string]any
	if err := toml.Unmarshal(raw, &tree); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range settings() {
		known[s.Key] = true
	}
	values := map[string]string{}
	return values, flatten(tree, "", known, values)
}

func flatten(tree map[string]any, prefix string, known map[string]bool, values map[string]string) error {
	for name, v := range tree {
		key := prefix + name
		if table, ok := v.(map[string]any); ok && !known[key] {
			if err := flatten(table, key+".", known, values); err != nil {
				return err
			}
			continue
		}
		if !known[key] {
			return fmt.Errorf("unknown setting %q", key)
		}
		text, err := textOf(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		values[key] = text
	}
	return nil
}

func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	case []any:
		items := make([]string, 0, len(v))
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return "", errors.New("write a list of strings")
			}
			items = append(items, s)
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("write a string, a number, true, false or a list of strings")
}
