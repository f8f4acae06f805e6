package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

func (s *session) invoiceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "create --order ID --price 10.50 --amount 10.50", Short: "Creates an invoice for an order, at most once",
		Long: `Creates an invoice for an order. The exit code is 0 if it exists; 2, 3, 4 or 130 if it
does not; 8 if it exists for another request; 5 if that is unknown: look the order up
before you run this again. See gateway help outcomes.

With --orders, a file remembers what became of each order. Run again, the command prints
the same invoice, also while another process is creating it; with another price, amount,
currency, coin or network it is refused, and names the invoice. An order whose outcome is
unknown is sent again only with --resubmit. gateway-orders lists and ends these, with
--db sqlite:FILE. After a crash an order is in flight for 5 minutes, and unknown then.`,
		Example: `  gateway invoice create --order A-17 --price 10.50 --amount 10.50 --currency usd
  gateway invoice create --order A-17 --price 10.50 --amount 10.50 --coin USDT --network Tron -o json
  gateway invoice create --order A-17 --price 10.50 --amount 10.50 --orders orders.db --resubmit`,
	}
	var i invoiceFlags
	i.define(c.Flags())
	return s.asks(c, 90*time.Second, func(ctx context.Context, _ []string) error {
		if wrong := i.check(); wrong != "" {
			return cli.Usage(c, wrong)
		}
		return i.create(ctx, s)
	})
}

// invoiceFlags are the flags of `gateway invoice create`.
type invoiceFlags struct {
	request  gateway.InvoiceRequest
	orders   string
	resubmit bool
}

func (i *invoiceFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&i.request.OrderID, "order", "", "your own `ID` of the order, a new one for each order")
	flags.Func("price", "the `price` of the order in the fiat currency, such as 10.50", into(&i.request.Price))
	flags.Func("amount", "the `amount` of the order, such as 10.50", into(&i.request.Amount))
	flags.StringVar(&i.request.BaseCurrency, "currency", "", "the fiat `currency` of the price, such as usd")
	flags.StringVar(&i.request.CoinSymbol, "coin", "", "the ticker `symbol` of the coin to pay with, such as USDT")
	flags.StringVar(&i.request.NetworkName, "network", "", "the `name` of the network to pay on")
	flags.StringVar(&i.orders, "orders", "", "a `file` that remembers the orders of all runs, which is created")
	flags.BoolVar(&i.resubmit, "resubmit", false, "send an order of unknown outcome again, after you have looked it up; with --orders")
}

// check returns what is wrong with the flags. The client checks the rest of the request.
func (i *invoiceFlags) check() string {
	switch {
	case i.request.OrderID == "":
		return "--order is missing"
	case !i.request.Price.IsPositive():
		return "--price is missing, or not above zero"
	case !i.request.Amount.IsPositive():
		return "--amount is missing, or not above zero"
	case i.resubmit && i.orders == "":
		return "--resubmit needs --orders: without it no order is remembered, and none is refused"
	default:
		return ""
	}
}

// create creates the invoice.
func (i *invoiceFlags) create(ctx context.Context, s *session) error {
	var opts []gateway.Option
	orders := &orderFile{path: i.orders}
	defer func() { _ = orders.close() }() // what it has is on the disk
	if i.orders != "" {
		opts = append(opts, gateway.WithOrderGuard(orders))
	}
	client, err := s.client(opts...)
	if err != nil {
		return err
	}
	var call []gateway.CallOption
	if i.resubmit {
		call = append(call, gateway.AllowResubmit())
	}
	invoice, err := client.CreateInvoice(ctx, i.request, call...)
	if err != nil {
		return &invoiceError{err, orders.failed}
	}
	if err := s.printInvoice(invoice, note(invoice, orders.failed)); err != nil {
		return fmt.Errorf("the invoice exists, but its response could not be written: %w: %s", err, invoice.Raw)
	}
	return nil
}

// note returns what there is to say about an invoice that exists, or "".
func note(invoice *gateway.Invoice, notRecorded error) string {
	switch {
	case notRecorded != nil:
		return fmt.Sprintf("The next run will not know that this invoice exists: the file of --orders could not keep it: %v", cli.Reason(notRecorded))
	case invoice.Replayed:
		return "This invoice exists since an earlier run. Nothing was sent."
	default:
		return ""
	}
}

// into returns a function that parses a decimal number exactly into amount.
func into(amount *decimal.Decimal) func(string) error {
	return func(text string) (err error) {
		if *amount, err = decimal.NewFromString(text); err != nil {
			return errors.New("write it like 10.50")
		}
		return nil
	}
}

// An invoiceError is the failure of an invoice. Its text has the outcome.
type invoiceError struct {
	error
	record error // why --orders does not have it; nil if it has
}

func (e *invoiceError) Unwrap() error { return e.error }

func (e *invoiceError) Error() string {
	text := e.error.Error()
	switch gateway.OutcomeOf(e.error) {
	case gateway.OutcomeNotSent:
		text = "nothing was sent: " + strings.Replace(text, "; nothing was sent", "", 1)
	case gateway.OutcomeRejected:
		text = "the service refused the invoice: " + text
	} // any other states what it is
	if earlier, ok := errors.AsType[*gateway.OrderConflictError](e.error); ok && earlier.Invoice != nil {
		text += ". Its response: " + string(earlier.Invoice.Raw)
	}
	if e.record != nil {
		text += "; the file of --orders could not keep this: " + cli.Reason(e.record).Error()
	}
	return text
}

// An invoiceRecord is a created invoice as JSON.
type invoiceRecord struct {
	OrderID  string          `json:"orderId"`
	Response json.RawMessage `json:"response"` // as the service sent it; its form is not documented; null if --orders does not have it
	Replayed bool            `json:"replayed"` // whether it exists since an earlier run
	Note     string          `json:"note,omitempty"`
}

// printInvoice prints an invoice with its response in one line, and a note about it on
// stderr. Indented, a response that is deeply nested could fill the memory.
func (s *session) printInvoice(invoice *gateway.Invoice, note string) error {
	if s.format == cli.FormatJSON {
		return cli.EncodeJSON(s.Out, invoiceRecord{invoice.OrderID, invoice.Raw, invoice.Replayed, note}, "")
	}
	text := "Its response was not kept."
	if len(invoice.Raw) > 0 {
		var response bytes.Buffer
		if err := json.Compact(&response, invoice.Raw); err != nil {
			return err
		}
		text = "Response:\n" + cli.Printable(response.String())
	}
	err := s.Write(fmt.Sprintf("The invoice for order %s exists. %s\n", cli.Printable(invoice.OrderID), text))
	if note != "" {
		s.WriteError(note)
	}
	return err
}
