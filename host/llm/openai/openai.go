// Package openai is the model adapter for any endpoint that is compatible with
// OpenAI's chat completions: OpenAI itself, gateways, and local servers.
//
// It owns: the choice of dialect by address. It does not own: the protocol, its
// known departures, limits and retries, which are host/llm/chat.
package openai

import (
	"errors"
	"net/url"

	"meanwhile/host/llm/chat"
)

// DefaultBaseURL is where an empty BaseURL leads.
const DefaultBaseURL = "https://api.openai.com/v1"

// New returns a provider. Model is needed; BaseURL includes any /v1; the key
// may be empty for local servers. A zero dialect becomes the one
// of the address: OpenAI's own models take max_completion_tokens only.
func New(cfg chat.Config) (*chat.Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if cfg.Model == "" {
		return nil, errors.New("openai: model is empty; set the name the endpoint knows")
	}
	if cfg.Name == "" {
		cfg.Name = "openai"
	}
	if u, err := url.Parse(cfg.BaseURL); err == nil && u.Hostname() == "api.openai.com" {
		cfg.Dialect.MaxCompletionTokens = true
	}
	return chat.New(cfg)
}
