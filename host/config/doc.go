// Package config gathers the settings of the host into one struct.
//
// It owns the names of settings, where they come from, their defaults and
// their checks. It does not own what a setting does.
//
// Each setting has one key, such as ask.timeout. Its value is taken from the
// first of these that gives one:
//
//	flag         --ask-timeout 60
//	environment  MEANWHILE_ASK_TIMEOUT=60
//	file         [ask]
//	             timeout = 60
//	default      120
//
// The file is TOML: the one named by --config or MEANWHILE_CONFIG, else
// $XDG_CONFIG_HOME/meanwhile/config.toml when it is there. An unknown key in it
// is an error. API keys come from the environment only (DEEPSEEK_API_KEY,
// OPENAI_API_KEY), so that they stand in no file and in no process list.
//
// A refused value is an *Error that names the key, the source and the fix.
// Load reads the environment and the file once and keeps no state.
package config
