package remotes

import (
	"bufio"
	"context"

	"meanwhile/host/gateway"
)

const (
	// backupChunk is how much of a backup one item carries; in base64 it stays
	// well below a frame.
	backupChunk = 512 << 10

	codeLocalOnly    = "LOCAL_ONLY"
	codeBackupFailed = "BACKUP_FAILED"
)

type backupItem struct {
	Data []byte `json:"data"` // base64
}

func bindBackup(g *gateway.Gateway, o Options) {
	stream(g, "host/backup", admin, func(ctx context.Context, c *gateway.Caller, _ none, send func(any) error) error {
		// A backup holds every session and the hashes of all tokens.
		if c.TokenID != Local().TokenID {
			return &gateway.Error{Code: codeLocalOnly, Message: "a backup is taken on the host's own machine: run `meanwhile backup` there"}
		}
		out := bufio.NewWriterSize(sender(send), backupChunk)
		if err := o.Backup(ctx, out); err != nil {
			return &gateway.Error{Code: codeBackupFailed, Message: err.Error()}
		}
		return out.Flush()
	})
}

// sender sends what is written as items.
type sender func(any) error

func (s sender) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), backupChunk)
		if err := s(backupItem{rest[:n]}); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}
