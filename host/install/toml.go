package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A block is ours from its first line to its last. TOML tables may come in any
// order, so it stands at the end and touches nothing else.
const (
	blockStart = "# meanwhile: begin, written by `meanwhile install`"
	blockEnd   = "# meanwhile: end"
)

// errForeign is a server of our name that we did not write.
var errForeign = errors.New("already names a server meanwhile that this program did not write: rename or remove it first")

var tomlServer = regexp.MustCompile(`(?m)^[ \t]*(\[[ \t]*mcp_servers[ \t]*\.[ \t]*"?meanwhile"?[ \t]*[\].]|mcp_servers[ \t]*\.[ \t]*"?meanwhile"?[ \t]*[.=])`)

// tomlBlock is the server's table. A TOML string of this kind is a JSON one.
func tomlBlock(command string, args []string) (string, error) {
	name, err := json.Marshal(command)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\n[mcp_servers.meanwhile]\ncommand = %s\nargs = %s\n%s\n", blockStart, name, list, blockEnd), nil
}

// putBlock sets the block, once.
func putBlock(src []byte, block string) ([]byte, error) {
	if start, end, ok := findBlock(src); ok && string(src[start:end]) == block {
		return src, nil
	}
	src = dropBlock(src)
	if tomlServer.Match(src) {
		return nil, errForeign
	}
	out := bytes.Clone(src)
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	if len(out) > 0 {
		out = append(out, '\n')
	}
	return append(out, block...), nil
}

// dropBlock takes the block out, with the empty line that was put before it.
func dropBlock(src []byte) []byte {
	start, end, ok := findBlock(src)
	if !ok {
		return src
	}
	if start >= 2 && src[start-1] == '\n' && src[start-2] == '\n' {
		start--
	}
	return splice(src, start, end, "")
}

func findBlock(src []byte) (start, end int, ok bool) {
	text := string(src)
	start = strings.Index(text, blockStart)
	if start < 0 {
		return 0, 0, false
	}
	n := strings.Index(text[start:], blockEnd)
	if n < 0 {
		return 0, 0, false
	}
	end = start + n + len(blockEnd)
	if strings.HasPrefix(text[end:], "\n") {
		end++
	}
	return start, end, true
}
