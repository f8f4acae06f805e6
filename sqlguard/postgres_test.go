package sqlguard

import (
	"os"
	"sync"
	"testing"

	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

// The server that all tests share. The first test that needs it starts it.
var shared struct {
	sync.Mutex
	server *postgrestest.Server
	err    error
}

// postgresDSN returns the DSN of PostgreSQL: SQLGUARD_POSTGRES, or that of a
// server that the tests start.
func postgresDSN(t *testing.T) string {
	t.Helper()
	if dsn := os.Getenv("SQLGUARD_POSTGRES"); dsn != "" {
		return dsn
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = postgrestest.Start("fsync=off", "shared_buffers=32MB")
	}
	if shared.err != nil {
		t.Fatalf("no PostgreSQL server: %v\nset SQLGUARD_POSTGRES to the DSN of one, or install it", shared.err)
	}
	return shared.server.DSN("postgres")
}

func stopPostgres() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Stop()
	}
}

// suspendPostgres suspends the server that the tests have started. It returns false if they
// did not start it.
func suspendPostgres() (resume func(), ok bool, err error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return nil, false, nil
	}
	resume, err = shared.server.Suspend()
	return resume, true, err
}
