// Command meanwhile is the host and its command line; see package cli.
package main

import (
	"context"
	"os"

	"meanwhile/host/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
