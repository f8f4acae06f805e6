// Package postgrestest starts PostgreSQL servers for tests.
package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cryptogw/gateway/internal/testing/daemon"
)

// A Server is a PostgreSQL server with a new cluster. It is safe for concurrent use.
type Server struct {
	*daemon.Daemon
	bin      string
	settings []string
}

// Start returns a server with settings, such as fsync=off, besides the defaults of PostgreSQL.
// It runs the newest of Debian's packages, or else the program in the PATH.
func Start(settings ...string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install postgresql)", err)
	}
	return start(bin, settings, func(s *Server) error {
		return s.Run(filepath.Join(bin, "initdb"), "-D", data(s.Dir), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	})
}

// Replica returns a server that follows this one, and accepts no writes until it is promoted
// (SELECT pg_promote()).
func (s *Server) Replica() (*Server, error) {
	return start(s.bin, s.settings, func(r *Server) error {
		return r.Run(filepath.Join(s.bin, "pg_basebackup"), "-D", data(r.Dir), "-R", "-h", "127.0.0.1", "-p", s.Port, "-U", "postgres", "-c", "fast", "--no-sync")
	})
}

// start starts a server whose data create makes.
func start(bin string, settings []string, create func(*Server) error) (*Server, error) {
	s := &Server{bin: bin, settings: settings}
	var err error
	if s.Daemon, err = daemon.New("postgres", "INT", "ready to accept ", s.command); err != nil { // "connections", or of a replica "read-only connections"
		return nil, err
	}
	if err = create(s); err == nil {
		err = s.Daemon.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, nil
}

func data(dir string) string { return filepath.Join(dir, "data") }

func (s *Server) command(dir, port string) []string {
	args := []string{filepath.Join(s.bin, "postgres"), "-D", data(dir), "-p", port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories="}, s.settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// DSN returns the data source name of a database. Those of a new cluster are postgres,
// template0 and template1.
func (s *Server) DSN(database string) string {
	return "postgres://postgres@127.0.0.1:" + s.Port + "/" + database + "?sslmode=disable"
}

func binaries() (dir string, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("postgres")
		return filepath.Dir(path), err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}
