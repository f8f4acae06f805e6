package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// ordersTimeout is how long a command about orders may take.
const ordersTimeout = time.Minute

// defaultMargin is how long a request may be in transit after its attempt has ended, unless --margin says otherwise.
const defaultMargin = 15 * time.Minute

func (s *session) ordersCommand() *cobra.Command {
	c := group("orders", "List and end the orders whose invoice may exist or not")
	c.Long = `Lists the orders whose invoice may exist or not, and ends them when a person has found out which.

The database is the shop's: ` + envDB + `, or the flag --db-file or --db. It is
postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH. A password
is in the first two, in PGPASSWORD or in ~/.pgpass, and not in --db, which other users of the
machine can read.`
	s.database.define(c.PersistentFlags())
	c.AddCommand(s.pendingCommand(), s.showCommand(), s.resolveCommand(), s.markCommand(), s.forgetCommand(), s.pruneCommand(), s.migrateCommand())
	return c
}

func marginFlag(flags *pflag.FlagSet) *time.Duration {
	return flags.Duration("margin", defaultMargin, "how `long` a request may be in transit: an order is absent only after it")
}

func merchantFlag(flags *pflag.FlagSet, without string) *string {
	return flags.String("merchant", "", "the `name` of the merchant (default "+without+")")
}

func (s *session) pendingCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "pending", Short: "List the orders that are unknown, the oldest first", Args: cobra.NoArgs,
		Long: `Lists the orders that were sent and whose invoice may exist or not. The exit code is 6 if there
is one, and 0 if not.

With -o csv it writes a file for orders resolve --from: fill in the column finding with exists or
absent. That an order is absent is accepted if it was listed after the time in absent_from, and
looked up after that: list it again then.`,
		Example: `  gateway orders pending
  gateway orders pending -o csv >findings.csv`,
	}
	s.prints(c, formatTable, formatJSON, formatCSV)
	merchant := merchantFlag(c.Flags(), "all merchants")
	margin := marginFlag(c.Flags())
	return s.runs(c, ordersTimeout, func(ctx context.Context, _ []string) error {
		orders, err := s.pending(ctx, *merchant)
		if err != nil {
			return err
		}
		if err := s.printPending(orders, *margin); err != nil || len(orders) == 0 {
			return err
		}
		return errLeft
	})
}

// pending reads the pending orders of a merchant, or of all. They have no bodies, which can be large.
func (s *session) pending(ctx context.Context, merchant string) (all []gateway.OrderStatus, err error) {
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
			if merchant == "" || o.Merchant == merchant {
				o.Record.Body, o.Earlier = nil, nil
				all = append(all, o)
			}
		}
		if len(orders) < page {
			return all, nil
		}
		query.After = orders[page-1]
	}
}

// pendingColumns are those of the CSV, which [session.resolveFile] reads.
var pendingColumns = []string{"token", "finding", "merchant", "order", "sent", "absent_from", "price", "amount", "currency", "coin", "network"}

func (s *session) printPending(orders []gateway.OrderStatus, margin time.Duration) error {
	records := []orderRecord{}
	var rows [][]string
	for _, o := range orders {
		r := recordOf(o, margin)
		records = append(records, r)
		if s.format == formatCSV {
			rows = append(rows, []string{
				r.Token, "", r.Merchant, r.OrderID, timeText(r.SentAt), timeText(r.AbsentFrom), r.Price, r.Amount, r.BaseCurrency, r.CoinSymbol, r.NetworkName,
			})
			continue
		}
		amount := strings.Join(strings.Fields(r.Amount+" "+r.CoinSymbol), " ")
		rows = append(rows, []string{r.OrderID, r.Merchant, timeText(r.SentAt), timeText(r.AbsentFrom), amount, shortened(r.Cause, 50), r.Token})
	}
	switch {
	case s.format == formatCSV:
		return s.writeCSV(append([][]string{pendingColumns}, rows...))
	case s.format == formatTable && len(orders) == 0:
		s.tell("No order is unknown.")
		return nil
	default:
		return s.print(records, []string{"ORDER", "MERCHANT", "SENT", "ABSENT FROM", "AMOUNT", "WHAT HAPPENED", "TOKEN"}, rows)
	}
}

// writeCSV writes rows whose cells are data in every spreadsheet, and never formulas.
func (s *session) writeCSV(rows [][]string) error {
	to := csv.NewWriter(s.out)
	for _, row := range rows {
		for i := range row {
			row[i] = guarded(printable(row[i]))
		}
		_ = to.Write(row) // Flush reports it
	}
	to.Flush()
	return to.Error()
}

// formulas are the characters that begin a formula.
const formulas = "=+-@\t\r"

// guarded returns a cell that no spreadsheet takes for a formula.
func guarded(cell string) string {
	if cell != "" && strings.Contains(formulas, cell[:1]) {
		return "'" + cell
	}
	return cell
}

// unguarded returns what guarded was given.
func unguarded(cell string) string {
	if len(cell) > 1 && cell[0] == '\'' && strings.Contains(formulas, cell[1:2]) {
		return cell[1:]
	}
	return cell
}

func (s *session) showCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show ORDER", Short: "Print all that is known of one order", Args: cobra.ExactArgs(1),
		Long: "Prints what the table has of an order, whatever its state is.",
		Example: `  gateway orders show A-17
  gateway orders show A-17 --merchant north -o json`,
	}
	s.prints(c, formatTable, formatJSON)
	merchant := merchantFlag(c.Flags(), "none")
	return s.runs(c, ordersTimeout, func(ctx context.Context, args []string) error {
		guard, err := s.guard(ctx)
		if err != nil {
			return err
		}
		o, err := known(ctx, guard, *merchant, args[0])
		if err != nil {
			return err
		}
		return s.printFields(recordOf(o, defaultMargin))
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

// An orderRecord is an order as JSON. No member is ever renamed or redefined; unknown ones are left out.
type orderRecord struct {
	OrderID  string    `json:"orderId"`
	Merchant string    `json:"merchant,omitempty"`
	State    string    `json:"state"`
	Gateway  string    `json:"gateway,omitempty"`
	Attempts int       `json:"attempts"`
	Attempt  string    `json:"attempt,omitempty"` // the last one, for orders forget
	Begun    time.Time `json:"begun,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Created  time.Time `json:"created,omitzero"`

	UnknownSince time.Time `json:"unknownSince,omitzero"`
	AbsentFrom   time.Time `json:"absentFrom,omitzero"` // of an unknown order: it can be found absent if it is read after this time
	Token        string    `json:"token,omitempty"`     // of an unknown order: for orders resolve

	Price        string `json:"price,omitempty"`
	Amount       string `json:"amount,omitempty"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`

	SentAt  time.Time         `json:"sentAt,omitzero"`
	Status  int               `json:"status,omitempty"`
	Body    string            `json:"body,omitempty"`
	Cause   string            `json:"cause,omitempty"`
	Invoice json.RawMessage   `json:"invoice,omitempty"`
	Others  []json.RawMessage `json:"others,omitempty"`  // further invoices of the order, which should not exist
	Earlier []attemptRecord   `json:"earlier,omitempty"` // other attempts of unknown outcome

	Resolved   time.Time `json:"resolved,omitzero"`
	ResolvedBy string    `json:"resolvedBy,omitempty"`
	Finding    string    `json:"finding,omitempty"` // exists or absent
	Note       string    `json:"note,omitempty"`
}

// An attemptRecord is an attempt of unknown outcome before the last one.
type attemptRecord struct {
	SentAt time.Time `json:"sentAt,omitzero"`
	Status int       `json:"status,omitempty"`
	Cause  string    `json:"cause,omitempty"`
}

// Findings.
const (
	findsExists = "exists"
	findsAbsent = "absent"
)

func recordOf(o gateway.OrderStatus, margin time.Duration) orderRecord {
	r := o.Record
	record := orderRecord{
		OrderID: o.OrderID, Merchant: o.Merchant, State: o.State.String(), Gateway: o.Gateway, Attempts: o.Attempts, Attempt: o.Attempt,
		Begun: o.Begun, Ended: o.Ended, Created: o.Created, UnknownSince: o.Since, Token: sqlguard.Token(o),
		Price: amountText(r.Request.Price), Amount: amountText(r.Request.Amount), BaseCurrency: r.Request.BaseCurrency,
		CoinSymbol: r.Request.CoinSymbol, NetworkName: r.Request.NetworkName,
		SentAt: r.SentAt, Status: r.StatusCode, Body: string(r.Body), Cause: r.Cause, Invoice: validJSON(r.Invoice),
		Resolved: o.Resolved, ResolvedBy: o.Finding.By, Note: o.Finding.Note,
	}
	if record.SentAt.IsZero() {
		record.SentAt = o.Begun
	}
	if o.State == gateway.OrderUnknown {
		record.AbsentFrom = absentFrom(o, margin)
	}
	for _, a := range o.Earlier {
		record.Earlier = append(record.Earlier, attemptRecord{a.SentAt, a.StatusCode, a.Cause})
	}
	for _, other := range r.Others {
		record.Others = append(record.Others, validJSON(other))
	}
	if !o.Resolved.IsZero() {
		if record.Finding = findsAbsent; o.Finding.Exists {
			record.Finding = findsExists
		}
	}
	return record
}

// absentFrom returns from when on an order can be found absent, to the second and not earlier.
func absentFrom(o gateway.OrderStatus, margin time.Duration) time.Time {
	return o.SentUntil.Add(margin).Truncate(time.Second).Add(time.Second)
}

// validJSON returns JSON as it is, and null for another text, which would fail the whole output.
func validJSON(text json.RawMessage) json.RawMessage {
	if text != nil && !json.Valid(text) {
		return json.RawMessage("null")
	}
	return text
}

// timeText is a time in UTC to the second; "" for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// amountText is an amount with all its digits; "" for none.
func amountText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.StringFixed(max(0, -d.Exponent()))
}
