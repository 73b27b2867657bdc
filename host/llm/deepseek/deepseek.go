// Package deepseek is the model adapter for DeepSeek's chat completions.
//
// It owns: the address, the default model and the dialect. DeepSeek wants the
// reasoning of tool-calling turns back in all later requests; its usage rides
// on the finish chunk; its queued requests send comments, for up to ten
// minutes, which the idle limit takes for life and the progress limit does not.
//
// It does not own: the protocol, limits and retries, which are host/llm/chat.
package deepseek

import (
	"errors"

	"meanwhile/host/llm/chat"
)

// Defaults of the settings this package owns.
const (
	DefaultBaseURL = "https://api.deepseek.com"
	DefaultModel   = "deepseek-flash"
)

// New returns a provider. The key is needed; BaseURL, Model and Name have
// defaults; the dialect given is ignored.
func New(cfg chat.Config) (*chat.Client, error) {
	if cfg.APIKey == "" {
		return nil, errors.New("deepseek: api key is empty; set it in the configuration or the environment")
	}
	if cfg.Name == "" {
		cfg.Name = "deepseek"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if cfg.Model == "" {
		cfg.Model = DefaultModel
	}
	cfg.Dialect = chat.Dialect{Reasoning: chat.ToolTurns}
	return chat.New(cfg)
}
