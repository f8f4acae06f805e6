//go:build ignore

// This runs a command in a directory, with POSTGRES_DSN, the data source name of a new
// PostgreSQL server, in its environment: go run command.go DIRECTORY COMMAND [ARGUMENT...].
// It is of no package, so that nobody is given it with the client.
package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

func run(dir, name string, args ...string) error {
	server, err := postgrestest.Start("shared_buffers=32MB")
	if err != nil {
		return err
	}
	defer server.Stop()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "POSTGRES_DSN="+server.DSN("postgres"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
