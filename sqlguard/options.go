package sqlguard

import (
	"fmt"
	"regexp"
	"time"
)

// DefaultTable is the name of the table, unless [WithTable] gives another.
const DefaultTable = "gateway_orders"

const (
	defaultLease = 5 * time.Minute
	leastLease   = time.Second
	mostLease    = 24 * time.Hour
)

// An Option changes how [New] makes a [Guard]. The last of several for the
// same thing counts.
type Option func(*config) error

// config is what the options set.
type config struct {
	dialect Dialect
	table   string
	lease   time.Duration
	repeats bool
}

// WithDialect says which database the handle is for. It is needed only where
// the driver is wrapped, for tracing say, so that [New] does not recognise it.
func WithDialect(d Dialect) Option {
	return func(cfg *config) error {
		if d != PostgreSQL && d != SQLite {
			return badArgument("WithDialect", "must be PostgreSQL or SQLite")
		}
		cfg.dialect = d
		return nil
	}
}

// WithTable names the table: 1 to 58 lower-case letters, digits and
// underscores, of which the first is not a digit. PostgreSQL looks for it
// along the search_path of the connection.
func WithTable(name string) Option {
	return func(cfg *config) error {
		if reason := checkTable(name); reason != "" {
			return badArgument("WithTable", reason)
		}
		cfg.table = name
		return nil
	}
}

// checkTable says what is wrong with the name of a table, or "". The name of
// its index is 5 bytes longer, and PostgreSQL cuts names at 63.
func checkTable(name string) string {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,57}$`).MatchString(name) {
		return "must be 1 to 58 of a-z, 0-9 and _, the first not a digit"
	}
	return ""
}

// WithLease sets for how long an order is in flight after a crash, before it
// counts as unknown: from 1 second to 24 hours, in milliseconds. The default
// is 5 minutes.
//
// It must be longer than a CreateInvoice can take, which with the client's
// defaults is a little over 3 minutes: MaxAttempts times the sum of
// InvoiceTimeout and MaxDelay, both of [gateway.RetryPolicy]. With a shorter
// one, orders that are still being sent are listed by [Guard.Pending].
func WithLease(d time.Duration) Option {
	return func(cfg *config) error {
		if d < leastLease || d > mostLease {
			return badArgument("WithLease", "must be from 1 second to 24 hours")
		}
		cfg.lease = d
		return nil
	}
}

// WithRepeats lets an order be sent again after an invoice was created for it,
// one at a time, as the client's own guard does. Without it such an order is
// refused with [ErrOrderCreated]: of two processes that race for an order, the
// second may arrive when the first has already succeeded.
func WithRepeats() Option {
	return func(cfg *config) error {
		cfg.repeats = true
		return nil
	}
}

// interval writes a duration so that both databases understand it.
func interval(d time.Duration) string {
	ms := d.Milliseconds()
	return fmt.Sprintf("%d.%03d seconds", ms/1000, ms%1000)
}
