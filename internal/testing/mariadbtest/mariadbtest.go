// Package mariadbtest starts MariaDB servers for tests.
package mariadbtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cryptogw/gateway/internal/testing/daemon"
)

// A Server is a MariaDB server with a database that is called shop. It is safe for concurrent use.
type Server struct {
	*daemon.Daemon
	path     string
	settings []string
}

// Start returns a server with settings, such as innodb-flush-log-at-trx-commit=0, besides the defaults of MariaDB.
func Start(settings ...string) (*Server, error) {
	path, err := exec.LookPath("mariadbd")
	if err != nil {
		path = "/usr/sbin/mariadbd" // which is not in the PATH of everyone
	}
	s := &Server{path: path, settings: settings}
	if s.Daemon, err = daemon.New("mysql", "KILL", "ready for connections", s.command); err != nil {
		return nil, fmt.Errorf("%w (apt-get install mariadb-server)", err)
	}
	if err = s.create(); err == nil {
		err = s.Daemon.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, nil
}

func (s *Server) create() error {
	// Its folder for temporary files is its own: otherwise two that run at once drop each other's tables.
	err := s.Run("mariadb-install-db", "--no-defaults", "--datadir="+data(s.Dir), "--tmpdir="+s.Dir, "--auth-root-authentication-method=normal",
		"--skip-test-db", "--innodb-flush-method=nosync")
	return errors.Join(err, s.Run("mkdir", filepath.Join(data(s.Dir), "shop")))
}

func data(dir string) string { return filepath.Join(dir, "data") }

func (s *Server) command(dir, port string) []string {
	args := []string{s.path, "--no-defaults", "--datadir=" + data(dir), "--socket=" + filepath.Join(dir, "socket"), "--bind-address=127.0.0.1", "--port=" + port}
	for _, setting := range s.settings {
		args = append(args, "--"+setting)
	}
	return args
}

// DSN returns the data source name of a database, such as shop.
func (s *Server) DSN(database string) string {
	return "root@tcp(127.0.0.1:" + s.Port + ")/" + database
}
