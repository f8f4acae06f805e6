package sqlguard

import (
	"regexp"
	"time"
)

// DefaultTable is the name of the table unless [WithTable] sets another.
const DefaultTable = "gateway_orders"

const (
	defaultLease = 5 * time.Minute
	leastLease   = time.Second
	mostLease    = 24 * time.Hour
	mostPatience = 10 * time.Second
)

// An Option configures a [Guard], see [New]. If an option is repeated, the last
// one wins.
type Option func(*config) error

// config is the configuration that the options set.
type config struct {
	dialect   Dialect
	table     string
	lease     time.Duration
	merchants bool

	withoutDurability bool
}

// WithDialect sets the dialect of the database. It is needed only if [New] does
// not recognise the driver because another driver wraps it, for example for
// tracing.
func WithDialect(d Dialect) Option {
	return func(cfg *config) error {
		if !d.isValid() {
			return badArgument("WithDialect", badDialect)
		}
		cfg.dialect = d
		return nil
	}
}

// WithTable sets the name of the table: 1 to 58 lower-case letters, digits and
// underscores; the first is not a digit. The default is [DefaultTable].
// PostgreSQL resolves the name by the search_path of the connection.
func WithTable(name string) Option {
	return func(cfg *config) error {
		if reason := checkTable(name); reason != "" {
			return badArgument("WithTable", reason)
		}
		cfg.table = name
		return nil
	}
}

// checkTable returns why the name of a table is invalid, or "". The name of its
// index is 5 bytes longer, and PostgreSQL truncates names to 63 bytes.
func checkTable(name string) string {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,57}$`).MatchString(name) {
		return "must be 1 to 58 of a-z, 0-9 and _, the first not a digit"
	}
	return ""
}

// WithLease sets how long an order remains in flight after a crash before it is
// unknown: from 1 second to 24 hours, truncated to milliseconds. The default is 5
// minutes.
func WithLease(d time.Duration) Option {
	return func(cfg *config) error {
		if d < leastLease || d > mostLease {
			return badArgument("WithLease", "must be from 1 second to 24 hours")
		}
		cfg.lease = d.Truncate(time.Millisecond)
		return nil
	}
}

// Lease returns the duration of [WithLease]. [gateway.New] refuses a lease that is not longer than an invoice may take.
func (g *Guard) Lease() time.Duration { return g.cfg.lease }

// WithMerchants tells the orders of several merchants apart: an order is identified by the merchant and the
// orderId, and every call names its merchant by [gateway.WithMerchant]. Without the option no call does. A call of the
// other kind is refused with a [*gateway.ArgumentError].
//
// A table has orders of one kind only, because an order without a merchant is another order than the same one with a
// merchant: it would be sent twice. Migrate, Check, Mark and Begin refuse a table that has a sent order of the other
// kind, and name the SQL that moves its orders. Where processes of both kinds start at once on an empty table, the kind
// of the first created order wins. That holds for as long as the table has one: stop all processes before you change the kind.
func WithMerchants() Option {
	return func(cfg *config) error {
		cfg.merchants = true
		return nil
	}
}

// WithoutDurability makes [Guard.Migrate] and [Guard.Check] accept settings with which a crash or a power failure loses
// committed orders, see Check: for databases of tests, and for a cluster whose other nodes keep a commit, such as
// Galera. Elsewhere an order that is lost is sent again, and has two invoices.
func WithoutDurability() Option {
	return func(cfg *config) error {
		cfg.withoutDurability = true
		return nil
	}
}

// patience is how long a Begin may take. The call has the rest of the lease.
func (c config) patience() time.Duration { return min(c.lease/4, mostPatience) }
