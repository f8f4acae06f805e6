package suite

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A Target is a gateway that is to be checked. BaseURL and APIKey are required.
// The zero values of the rest ask for the least: reads only.
type Target struct {
	BaseURL string // as [gateway.New] takes it
	APIKey  string // one that the gateway accepts

	// Transport carries every request. Nil means [http.DefaultTransport], of
	// which idle connections stay open.
	Transport http.RoundTripper

	// WithdrawalID is of a withdrawal that the gateway knows. Without it nothing
	// is asked about a withdrawal but what is refused.
	WithdrawalID string

	// AllowWrites lets the suite create invoices: six a run, each of 1.00 and
	// for an order of its own, "suite-" and 16 random letters. Of four requests
	// more, which lack a member, none should become an invoice.
	AllowWrites bool

	// Readable asks that the client understands also the bodies that are not
	// shown, and that what stands in them agrees with the listing. A gateway that
	// fails for this only does nothing wrong; the client cannot be used with it.
	Readable bool
}

// A Case is one thing that a gateway must do.
type Case struct {
	Name  string // a sentence
	Where string // what it is from: a heading of the pages, and the number there

	Writes     bool // whether it needs Target.AllowWrites
	Withdrawal bool // whether it needs Target.WithdrawalID
	Invalid    bool // whether it sends what the pages do not allow, to see it refused

	// Check returns what is wrong, or nil. It is safe for concurrent use and
	// ends with its context.
	Check func(context.Context, Target) error
}

// Applies reports whether the target allows the case, and has what it needs.
func (c Case) Applies(t Target) bool {
	return (t.AllowWrites || !c.Writes) && (t.WithdrawalID != "" || !c.Withdrawal)
}

// Cases returns the whole table. Every call makes a new one.
func Cases() []Case {
	return append(append(append(listing(), lookups()...), keyed()...), invoices()...)
}

// caseTimeout bounds one case.
const caseTimeout = time.Minute

// Run runs every case that applies to the target as a subtest, one after the
// other, and logs the names of those that do not apply. A case fails after a
// minute.
func Run(t *testing.T, target Target) {
	t.Helper()
	for _, c := range Cases() {
		if !c.Applies(target) {
			t.Logf("left out: %s", c.Name)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
			defer cancel()
			if err := c.Check(ctx, target); err != nil {
				t.Errorf("%s: %v", c.Where, err)
			}
		})
	}
}

// client returns a client of the target's.
func (t Target) client(opts ...gateway.Option) (*gateway.Client, error) {
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: t.Transport})}, opts...)
	return gateway.New(t.BaseURL, t.APIKey, opts...)
}

// url returns the address of a path.
func (t Target) url(path string) string {
	return strings.TrimSuffix(t.BaseURL, "/") + path
}
