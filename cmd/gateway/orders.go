package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// ordersTimeout is how long a command about orders may take.
const ordersTimeout = time.Minute

func (s *session) ordersCommand() *cobra.Command {
	c := group("orders", "List and end the orders whose invoice may exist or not")
	c.Long = `Lists the orders whose invoice may exist or not, and ends them when a person has found out which.

The database is the shop's, in the variable ` + envDB + `. It is postgres://user@host:5432/database,
mysql://user@host:3306/database or sqlite:PATH, with settings of the driver after a question mark,
or user@tcp(host:3306)/database or file:PATH, as drivers write them. A password is in the URL, in PGPASSWORD or in ~/.pgpass.`
	c.PersistentFlags().StringVar(&s.table, "table", sqlguard.DefaultTable, "the `name` of the table")
	c.AddCommand(s.pendingCommand(), s.showCommand(), s.resolveCommand(), s.markCommand(), s.forgetCommand(), s.pruneCommand(), s.migrateCommand())
	return c
}

func marginFlag(flags *pflag.FlagSet) *time.Duration {
	return flags.Duration("margin", gateway.DefaultMargin, "the longest `duration` that a request may be in transit: an order is absent only after it")
}

func merchantFlag(flags *pflag.FlagSet) *string {
	return flags.String("merchant", "", "the `name` of the merchant (default none)")
}

func (s *session) pendingCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "pending", Short: "List the orders that are unknown, the oldest first", Args: cobra.NoArgs,
		Long: `Lists the orders that were sent and whose invoice may exist or not. The exit code is 6 if there
is one, and 0 if not.

With -o csv it writes a file for orders resolve --from: fill in the column finding with exists or
absent. An unknown request, such as the one of a marked order, is empty. Absent is accepted only for an
order that was listed, and looked up, after the time in absent_from: list it again then.`,
		Example: `  gateway orders pending
  gateway orders pending -o csv >findings.csv`,
	}
	s.prints(c, formatTable, formatJSON, formatCSV)
	margin := marginFlag(c.Flags())
	return s.runs(c, ordersTimeout, func(ctx context.Context, _ []string) error {
		orders, err := s.pending(ctx)
		if err != nil {
			return err
		}
		if err := s.printPending(orders, *margin); err != nil || len(orders) == 0 {
			return err
		}
		return errLeft
	})
}

// pending reads the pending orders. They have no bodies, which can be large.
func (s *session) pending(ctx context.Context) (all []gateway.OrderStatus, err error) {
	guard, err := s.guard(ctx)
	if err != nil {
		return nil, err
	}
	const page = 1000
	query := gateway.PendingQuery{Most: page}
	for {
		orders, err := guard.Pending(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, o := range orders {
			o.Record.Body, o.Earlier = nil, nil
			all = append(all, o)
		}
		if len(orders) < page {
			return all, nil
		}
		query.After = orders[page-1]
	}
}

func (s *session) printPending(orders []gateway.OrderStatus, margin time.Duration) error {
	if s.format == formatTable && len(orders) == 0 {
		s.tell("No order is unknown.")
		return nil
	}
	records := make([]orderRecord, len(orders))
	for i, o := range orders {
		records[i] = recordOf(o, margin)
	}
	if s.format == formatCSV {
		return s.writeCSV(records)
	}
	columns := []string{"ORDER", "MERCHANT", "SENT", "ABSENT FROM", "AMOUNT", "WHAT HAPPENED", "TOKEN"}
	return printList(s, records, columns, func(r orderRecord) []string {
		request := r.request()
		amount := strings.TrimSpace(request[1] + " " + request[3])
		return []string{r.OrderID, r.Merchant, timeText(r.SentAt), timeText(r.AbsentFrom), amount, shortened(r.Cause, 50), r.Token}
	})
}

// writeCSV writes the file that [session.resolveFile] reads. Its cells are data in every spreadsheet, and never formulas.
func (s *session) writeCSV(records []orderRecord) error {
	to := csv.NewWriter(s.out)
	columns := "token,finding,merchant,order,sent,absent_from,price,amount,currency,coin,network,state,invoice,what_happened,found"
	_ = to.Write(strings.Split(columns, ",")) // Flush reports it
	for _, r := range records {
		row := []string{r.Token, "", r.Merchant, r.OrderID, timeText(r.SentAt), timeText(r.AbsentFrom)}
		row = append(append(row, r.request()...), r.State, string(r.Invoice), r.Cause, r.found())
		for i := range row {
			row[i] = cellOf(row[i])
		}
		_ = to.Write(row) // likewise
	}
	to.Flush()
	return to.Error()
}

func (s *session) showCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show ORDER", Short: "Print all that is known of one order", Args: cobra.ExactArgs(1),
		Long: "Prints the table's record of an order, in any state, without unknown values.",
		Example: `  gateway orders show A-17
  gateway orders show A-17 --merchant north -o json`,
	}
	s.prints(c, formatTable, formatJSON, formatCSV)
	merchant := merchantFlag(c.Flags())
	return s.runs(c, ordersTimeout, func(ctx context.Context, args []string) error {
		guard, err := s.guard(ctx)
		if err != nil {
			return err
		}
		o, err := known(ctx, guard, *merchant, args[0])
		if err != nil {
			return err
		}
		record := recordOf(o, gateway.DefaultMargin)
		if s.format == formatCSV {
			return s.writeCSV([]orderRecord{record})
		}
		return s.printFields(record)
	})
}

// known reads an order that the table has.
func known(ctx context.Context, guard *sqlguard.Guard, merchant, id string) (gateway.OrderStatus, error) {
	o, err := guard.Order(ctx, merchant, id)
	if err == nil && o.Attempts == 0 && o.State == gateway.OrderFree {
		err = errors.New("the table has no such order; if its merchant has a name, give --merchant")
	}
	return o, err
}

// An orderRecord is an order as JSON; unknown members are left out.
type orderRecord struct {
	OrderID  string    `json:"orderId"`
	Merchant string    `json:"merchant,omitzero"`
	State    string    `json:"state"`
	Gateway  string    `json:"gateway,omitzero"`
	Attempts int       `json:"attempts"`
	Attempt  string    `json:"attempt,omitzero"` // the last one, for orders forget
	Ended    time.Time `json:"ended,omitzero"`

	UnknownSince time.Time `json:"unknownSince,omitzero"`
	AbsentFrom   time.Time `json:"absentFrom,omitzero"` // of an unknown order: it can be found absent if it is read after this time
	Token        string    `json:"token,omitzero"`      // of an unknown order: for orders resolve

	gateway.OrderRecord                         // the invoice, or the last attempt
	Request             *gateway.InvoiceRequest `json:"request,omitzero"`
	Body                string                  `json:"body,omitzero"`
	Earlier             []gateway.OrderRecord   `json:"earlier,omitzero"` // other attempts of unknown outcome

	Findings []findingRecord `json:"findings,omitzero"`
}

// A findingRecord is a finding as JSON.
type findingRecord struct {
	Finding string    `json:"finding"` // exists or absent
	By      string    `json:"by"`
	Note    string    `json:"note,omitzero"`
	At      time.Time `json:"at"`
	Attempt string    `json:"attempt"` // the last one then
}

// Findings.
const (
	findsExists = "exists"
	findsAbsent = "absent"
)

func recordOf(o gateway.OrderStatus, margin time.Duration) orderRecord {
	record := orderRecord{
		OrderID: o.OrderID, Merchant: o.Merchant, State: o.State.String(), Gateway: o.Gateway, Attempts: o.Attempts, Attempt: o.Attempt,
		Ended: o.Ended, UnknownSince: o.Since, Token: sqlguard.Token(o),
		OrderRecord: o.Record, Body: string(o.Record.Body), Earlier: o.Earlier,
	}
	if o.Record.Request.OrderID != "" { // otherwise it is not known, nor when it was sent
		record.Request = &o.Record.Request
		record.SentAt = cmp.Or(o.Record.SentAt, o.Begun)
	}
	if o.State == gateway.OrderUnknown { // to the second, and not earlier
		record.AbsentFrom = o.SentUntil.Add(margin).Truncate(time.Second).Add(time.Second)
	}
	for _, f := range o.Findings {
		finding := map[bool]string{true: findsExists, false: findsAbsent}[f.Exists]
		record.Findings = append(record.Findings, findingRecord{finding, f.By, f.Note, f.At, f.Attempt})
	}
	return record
}

// request returns the price, amount, currency, coin and network; each empty if it is not known.
func (r *orderRecord) request() []string {
	if r.Request == nil {
		return make([]string, 5)
	}
	return []string{digits(r.Request.Price), digits(r.Request.Amount), r.Request.BaseCurrency, r.Request.CoinSymbol, r.Request.NetworkName}
}

// found returns the findings as one text, as the view of the table does.
func (r *orderRecord) found() string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s by %s at %s: %s", f.Finding, f.By, timeText(f.At), f.Note), ": "))
	}
	return strings.Join(all, "; ")
}

// timeText is a time in UTC to the second; "" for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
