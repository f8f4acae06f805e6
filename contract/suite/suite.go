package suite

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A Target is a gateway to be checked. BaseURL and APIKey are required. The zero
// values of the other fields allow the least: reads only.
type Target struct {
	BaseURL string // as [gateway.New] takes it
	APIKey  string // one that the gateway accepts

	// Transport sends every request. Nil means [http.DefaultTransport], whose idle
	// connections stay open.
	Transport http.RoundTripper

	// WithdrawalID is that of a withdrawal that the gateway knows. If it is empty, the
	// only inquiries are those that the gateway must refuse.
	WithdrawalID string

	// AllowWrites lets the suite create invoices: six in a run, each of 1.00 and for
	// an order of its own, "suite-" and 16 random letters. Four more requests lack a
	// required field; none of them should create an invoice.
	AllowWrites bool

	// Readable requires that the client can also read the bodies that are not
	// documented, and that they agree with the listing. A gateway that fails only
	// because of this conforms; the client cannot be used with it.
	Readable bool
}

// A Case is one requirement on a gateway.
type Case struct {
	Name  string // a sentence
	Where string // its source: the numbers of statements in docs/interface.md

	Writes     bool // whether it needs Target.AllowWrites
	Withdrawal bool // whether it needs Target.WithdrawalID
	Invalid    bool // whether it sends what docs/interface.md does not allow, and expects an error

	// Check returns what is wrong, or nil. It is safe for concurrent use and
	// ends with its context.
	Check func(context.Context, Target) error
}

// Applies reports whether the target allows the case and has what it needs.
func (c Case) Applies(t Target) bool {
	return (t.AllowWrites || !c.Writes) && (t.WithdrawalID != "" || !c.Withdrawal)
}

// Cases returns the whole table. Every call returns a new slice.
func Cases() []Case {
	return append(append(append(listing(), lookups()...), keyed()...), invoices()...)
}

// caseTimeout bounds one case.
const caseTimeout = time.Minute

// Run runs every case that applies to the target as a subtest, one after another, and
// logs the names of those that do not apply. A case fails after one minute.
func Run(t *testing.T, target Target) {
	t.Helper()
	for _, c := range Cases() {
		if !c.Applies(target) {
			t.Logf("does not apply: %s", c.Name)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
			defer cancel()
			if err := c.Check(ctx, target); err != nil {
				t.Errorf("docs/interface.md, %s: %v", c.Where, err)
			}
		})
	}
}

// client returns a client of the target.
func (t Target) client(opts ...gateway.Option) (*gateway.Client, error) {
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: t.Transport})}, opts...)
	return gateway.New(t.BaseURL, t.APIKey, opts...)
}

// url returns the address of a path.
func (t Target) url(path string) string {
	return strings.TrimSuffix(t.BaseURL, "/") + path
}
