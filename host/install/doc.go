// Package install writes this program into the settings of coding agents: the
// hooks that run `meanwhile hook AGENT` and the MCP server `meanwhile mcp`. It
// takes out what it wrote, and says what is missing.
//
// It owns: where each agent keeps its settings, the shapes of its entries, and
// edits of JSON (with comments and trailing commas) and TOML that leave every
// other byte alone. It does not own what the commands do (host/hook,
// host/mcpserver) or how the user is told (host/cli).
//
// # Install
//
// A plan reads every file first and writes none. Its changes are the whole texts
// before and after, so a dry run shows exactly what would be written. A file that
// has the wanted entries is left as it is, whatever else is in it. Entries of
// ours that differ are replaced. A server called meanwhile that is not ours is
// refused: it belongs to somebody.
//
// Before the first change of a file that was there, its text is kept beside it
// under BackupSuffix. Writing replaces the file in one step, through a link if it
// is one, and fails when somebody else wrote it since the plan was made.
//
// # Uninstall
//
// A file that still holds what was installed goes back to its kept text, byte
// for byte, or away if there was none. In a file that was changed since, our entries are
// taken out, and the containers that they leave empty and that were not there before.
//
// # Concurrency and limits
//
// Nothing here keeps state. A settings file is at most fileMax bytes and nested
// at most depthMax deep.
package install
