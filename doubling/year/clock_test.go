package year

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// The clock of a process is that of its bubble. Those of the database and of the gateway are set
// anew each midnight, so that time also goes back.
func databaseClock(at time.Time) time.Time {
	return at.Add(time.Duration(at.YearDay()%7-3) * 30 * time.Second)
}

func gatewayClock(at time.Time) time.Time {
	return at.Add(time.Duration(at.YearDay()%11-5) * 45 * time.Second)
}

const sqliteTime = "2006-01-02T15:04:05.000Z"

// strftime takes the place of SQLite's own, so that its clock is that of the bubble. It knows what sqlguard uses.
func strftime(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	texts := make([]string, len(args))
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return nil, fmt.Errorf("strftime of a %T", arg)
		}
		texts[i] = text
	}
	if len(texts) < 2 || texts[0] != "%Y-%m-%dT%H:%M:%fZ" {
		return nil, fmt.Errorf("strftime of %q", texts)
	}
	at, err := databaseClock(time.Now()), error(nil)
	if texts[1] != "now" {
		at, err = time.Parse(sqliteTime, texts[1])
	}
	for _, modifier := range texts[2:] {
		seconds, ok := strings.CutSuffix(modifier, " seconds")
		d, failed := time.ParseDuration(seconds + "s")
		if !ok || failed != nil {
			return nil, fmt.Errorf("strftime with %q", modifier)
		}
		at = at.Add(d)
	}
	return at.UTC().Format(sqliteTime), err
}

func TestMain(m *testing.M) {
	sqlite.MustRegisterScalarFunction("strftime", -1, strftime)
	os.Exit(m.Run())
}

// openDatabase opens a file without the durability that a merchant needs: nothing here is killed but goroutines.
func openDatabase(t *testing.T) *sql.DB {
	t.Helper()
	name := filepath.Join(t.TempDir(), "orders.db")
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)")
	must(t, err)
	db.SetMaxOpenConns(4)
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The lease of an order whose process died ends by the clock of the database, which is another one.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDatabase(t)
		defer db.Close()
		guard, err := sqlguard.New(db)
		must(t, err)
		must(t, guard.Migrate(t.Context()))
		_, err = guard.Begin(context.Background(), gateway.Order{Request: gateway.InvoiceRequest{OrderID: "order-1"}})
		must(t, err)
		for _, c := range []struct {
			after time.Duration
			want  sqlguard.State
		}{{0, sqlguard.StateInFlight}, {5*time.Minute - time.Millisecond, sqlguard.StateInFlight}, {time.Millisecond, sqlguard.StateUnknown}} {
			time.Sleep(c.after)
			o, err := guard.Order(t.Context(), "", "order-1")
			if begun := databaseClock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil || o.State != c.want || !o.Begun.Equal(begun) {
				t.Errorf("after %v it is %s, begun %v, %v", c.after, o.State, o.Begun, err)
			}
		}
	})
}
