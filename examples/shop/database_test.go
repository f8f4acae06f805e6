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

// A database that may forget an order is not opened.
func TestDatabase_mustLast(t *testing.T) {
	const settings, memory = "DATABASE_URL: a file: address takes no settings", `DATABASE_URL: the database would forget orders or make them twice (PRAGMA journal_mode says "memory")`
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

func TestDatabase_waitsForItsDisk(t *testing.T) {
	t.Parallel()
	address := newPostgres(t).database(t)
	_, err := openDatabase(t.Context(), address+"&synchronous_commit=off")
	require.ErrorContains(t, err, `DATABASE_URL: the database would forget orders or make them twice (SHOW synchronous_commit says "off")`)
	db, err := openDatabase(t.Context(), "file:"+filepath.Join(t.TempDir(), "shop.db"))
	require.NoError(t, err)
	defer db.Close()
	var synchronous int
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous))
	assert.Equal(t, 2, synchronous, "FULL")
}

// In a snapshot of the database, whoever has waited for the lock of an order
// would not see its successor.
func TestDatabase_isReadCommitted(t *testing.T) {
	t.Parallel()
	address := newPostgres(t).database(t)
	_, err := openDatabase(t.Context(), address+"&default_transaction_isolation=repeatable%20read")
	require.ErrorContains(t, err, `(SHOW default_transaction_isolation says "repeatable read"): the order guard is made for read committed`)

	db, err := openDatabase(t.Context(), address)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "SET default_transaction_isolation TO 'repeatable read'") // later, by somebody else
	require.NoError(t, err)
	tx, err := db.begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback()
	var isolation string
	require.NoError(t, tx.QueryRowContext(t.Context(), "SHOW transaction_isolation").Scan(&isolation))
	assert.Equal(t, "read committed", isolation)
}

// A password with characters that belong into an escape is nowhere in the
// error, be it whole or in part.
func TestDatabase_keepsItsPassword(t *testing.T) {
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

// whenWritten is a writer that does something, and keeps nothing.
type whenWritten func()

func (do whenWritten) Write(p []byte) (int, error) { do(); return len(p), nil }

// runOn opens a shop for a gateway, nil for the demo, on a database, and
// closes it once it greets.
func runOn(t *testing.T, gw *gatewaytest.Server, database string) error {
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
	ctx, closeIt := context.WithCancel(t.Context())
	defer closeIt()
	return run(ctx, whenWritten(closeIt), io.Discard)
}

// What the demo makes up never stands beside real orders, nor the orders of
// one gateway beside those of another.
func TestDatabase_isOfOneGateway(t *testing.T) {
	t.Chdir(t.TempDir())
	gw := newStage(t).gw
	require.NoError(t, runOn(t, nil, ""))
	require.NoError(t, runOn(t, gw, ""), "each has a database of its own")
	assert.FileExists(t, "demo.db")
	host := strings.TrimPrefix(gw.URL, "http://")
	assert.EqualError(t, runOn(t, gw, "file:demo.db"),
		"the database of DATABASE_URL has the orders of the demo, and this shop is for the gateway at "+host+": name another database")

	db, err := openDatabase(t.Context(), "file:shop.db")
	require.NoError(t, err)
	defer db.Close()
	for other, same := range map[string]bool{gw.URL + "/": true, "http://127.0.0.1:1/gateway": false, gw.URL + "2": false} {
		assert.Equal(t, same, db.belongTo(t.Context(), gatewayName(other)) == nil, other)
	}
	assert.ErrorContains(t, db.belongTo(t.Context(), "the demo"), "has the orders of the gateway at "+host+", and this shop is for the demo")
}

func TestDatabase_thatNamesNoGateway(t *testing.T) {
	for name, where := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "shop.db") },
		"PostgreSQL": func(t *testing.T) string { return newPostgres(t).database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.database = where(t)
			s, server := st.open()
			require.NoError(t, s.db.belongTo(t.Context(), "a gateway"), "there are no orders yet")
			_, err := s.db.change(t.Context(), `DELETE FROM shop_gateway`)
			require.NoError(t, err)
			newVisitor(t).order(server.URL, "mug")
			assert.ErrorContains(t, s.db.belongTo(t.Context(), "a gateway"), "has the orders of a gateway that it does not name")
		})
	}
}
