package sqlguard

import (
	"os"
	"sync"
	"testing"

	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

// A database is a server that tests start.
type database interface {
	DSN(database string) string
	Restart(signal string) error
	Suspend() (resume func(), err error)
	Kill()
	Stop()
}

// A sharedServer serves all tests. The first test that needs it starts it.
type sharedServer struct {
	start              func() (database, error)
	variable, database string // the variable of the environment that has the DSN of another one

	once   sync.Once
	server database
	err    error
}

var (
	sharedPostgres = sharedServer{start: startPostgres, variable: "SQLGUARD_POSTGRES", database: "postgres"}
	sharedMariaDB  = sharedServer{start: startMariaDB, variable: "SQLGUARD_MARIADB", database: "shop"}
)

func startPostgres() (database, error) {
	return postgrestest.Start("fsync=off", "shared_buffers=32MB", "max_connections=300")
}

func startMariaDB() (database, error) {
	return mariadbtest.Start("innodb-flush-log-at-trx-commit=0", "max-connections=300")
}

func (s *sharedServer) dsn(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv(s.variable); dsn != "" {
		return dsn
	}
	s.once.Do(func() { s.server, s.err = s.start() })
	if s.err != nil {
		t.Fatalf("no server: %v\nset %s to the DSN of one, or install it", s.err, s.variable)
	}
	return s.server.DSN(s.database)
}

func (s *sharedServer) stop() {
	if s.server != nil {
		s.server.Stop()
	}
}
