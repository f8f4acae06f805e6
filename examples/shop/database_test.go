package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A database that may lose an order is refused.
func TestDatabase_refusesVolatileSQLite(t *testing.T) {
	const settings, memory = "DATABASE_URL: a file: address must have no settings", `DATABASE_URL: the database could lose or duplicate orders (PRAGMA journal_mode is "memory")`
	for address, problem := range map[string]string{
		"file::memory:":                         memory,
		"file:%3Amemory%3A":                     settings,
		"file:":                                 "DATABASE_URL: names no file",
		"file:shop.db?mode=memory&cache=shared": settings,
		"file:shop.db?vfs=memdb":                settings,
		"file:shop.db?_pragma=synchronous(off)": settings,
		"file:shop.db?_pragma=journal_mode=off": settings,
		"file:shop.db?_journal=MEMORY":          settings,
		"file:shop.db#?_sync=0":                 settings,
	} {
		t.Run(address, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := openDatabase(t.Context(), address)
			assert.ErrorContains(t, err, problem)
			assert.NoFileExists(t, "shop.db")
		})
	}
}

func TestDatabase_synchronousCommit(t *testing.T) {
	t.Parallel()
	address := newPostgres(t).database(t)
	_, err := openDatabase(t.Context(), address+"&synchronous_commit=off")
	require.ErrorContains(t, err, `DATABASE_URL: the database could lose or duplicate orders (SHOW synchronous_commit is "off")`)
	db, err := openDatabase(t.Context(), "file:"+filepath.Join(t.TempDir(), "shop.db"))
	require.NoError(t, err)
	defer db.Close()
	var synchronous int
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous))
	assert.Equal(t, 2, synchronous, "FULL")
}

// At a stricter isolation level, a transaction that waited for the lock of
// an order would not see the next order.
func TestDatabase_isolationLevel(t *testing.T) {
	t.Parallel()
	address := newPostgres(t).database(t)
	_, err := openDatabase(t.Context(), address+"&default_transaction_isolation=repeatable%20read")
	require.ErrorContains(t, err, `(SHOW default_transaction_isolation is "repeatable read"): the order guard requires read committed`)

	db, err := openDatabase(t.Context(), address)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "SET default_transaction_isolation TO 'repeatable read'") // a change after the check at startup
	require.NoError(t, err)
	tx, err := db.beginTx(t.Context())
	require.NoError(t, err)
	defer tx.Rollback()
	var isolation string
	require.NoError(t, tx.QueryRowContext(t.Context(), "SHOW transaction_isolation").Scan(&isolation))
	assert.Equal(t, "read committed", isolation)
}

// Neither the whole password nor a part of it is in the error, even if it
// has characters that must be escaped.
func TestDatabase_redactsPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:SECRET@PASSWORD@127.0.0.1:1/db", "postgres://u:SECRET@PASS/WORD@127.0.0.1:1/db", "postgres://u:SECRET@PASS%WORD@127.0.0.1:1/db",
	} {
		_, err := openDatabase(t.Context(), address)
		require.ErrorContains(t, err, "DATABASE_URL: has more than one @")
		assert.NotContains(t, err.Error(), "SECRET")
		assert.NotContains(t, err.Error(), "PASS")
	}
}

// A writerFunc calls a function on every write and discards the data.
type writerFunc func()

func (do writerFunc) Write(p []byte) (int, error) { do(); return len(p), nil }

// runShop starts a shop for a gateway, nil for the demo, on a database, and
// stops it once it has printed its startup line.
func runShop(t *testing.T, gw *gatewaytest.Server, database string) error {
	t.Helper()
	base, key := "", ""
	if gw != nil {
		base, key = gw.URL, gw.APIKey
	}
	for name, value := range map[string]string{
		"GATEWAY_BASE_URL": base, "GATEWAY_API_KEY": key, "DATABASE_URL": database,
		"SHOP_ADDR": "127.0.0.1:0", "SHOP_ADMIN_PASSWORD": testPassword,
	} {
		t.Setenv(name, value)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return run(ctx, writerFunc(stop), io.Discard)
}

// Orders of the demo and of different gateways never share a database.
func TestDatabase_boundToOneGateway(t *testing.T) {
	t.Chdir(t.TempDir())
	gw := newHarness(t).gw
	require.NoError(t, runShop(t, nil, ""))
	require.NoError(t, runShop(t, gw, ""), "separate default databases")
	assert.FileExists(t, "demo.db")
	host := strings.TrimPrefix(gw.URL, "http://")
	assert.EqualError(t, runShop(t, gw, "file:demo.db"),
		"the database of DATABASE_URL has the orders of the demo, and this shop uses the gateway at "+host+": use another database")

	db, err := openDatabase(t.Context(), "file:shop.db")
	require.NoError(t, err)
	defer db.Close()
	for address, accepted := range map[string]bool{gw.URL + "/": true, "http://127.0.0.1:1/gateway": false, gw.URL + "2": false} {
		assert.Equal(t, accepted, db.bindGateway(t.Context(), gatewayName(address)) == nil, address)
	}
	assert.ErrorContains(t, db.bindGateway(t.Context(), "the demo"), "has the orders of the gateway at "+host+", and this shop uses the demo")
}

func TestDatabase_unnamedGateway(t *testing.T) {
	for name, newDatabase := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "shop.db") },
		"PostgreSQL": func(t *testing.T) string { return newPostgres(t).database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.database = newDatabase(t)
			s, server := h.open()
			require.NoError(t, s.db.bindGateway(t.Context(), "a gateway"), "no orders yet")
			_, err := s.db.change(t.Context(), `DELETE FROM shop_gateway`)
			require.NoError(t, err)
			newVisitor(t).order(server.URL, "mug")
			assert.ErrorContains(t, s.db.bindGateway(t.Context(), "a gateway"), "has the orders of an unnamed gateway")
		})
	}
}
