package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) invoiceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "create --order ID --price 10.50 --amount 10.50", Short: "Create an invoice for an order, at most once", Args: cobra.NoArgs,
		Long: `Creates an invoice for an order. The exit code is 0 if it exists; 2, 3, 4 or 130 if it does
not; 8 if it exists for another request. After any other code look the order up before you
run this again.

With --orders, a file remembers what became of each order. Run again, the command prints
the same invoice, also while another process is creating it; with another price, amount,
currency, coin or network it is refused, and prints that invoice. An order of unknown
outcome is not sent again until gateway orders resolve, with GATEWAY_ORDERS_DB=sqlite:FILE,
says that it has no invoice. After a crash an order is in flight for 5 minutes, and unknown then.`,
		Example: `  gateway invoice create --order A-17 --price 10.50 --amount 10.50 --currency usd
  gateway invoice create --order A-17 --price 10.50 --amount 10.50 --orders /var/lib/shop/orders.db -o json`,
	}
	var r gateway.InvoiceRequest
	flags := c.Flags()
	flags.StringVar(&r.OrderID, "order", "", "your own `ID` of the order, a new one for each order")
	flags.Func("price", "the price of the order in the fiat currency, a `decimal` such as 10.50", into(&r.Price))
	flags.Func("amount", "the amount of the order, a `decimal` such as 10.50", into(&r.Amount))
	flags.StringVar(&r.BaseCurrency, "currency", "", "the `code` of the fiat currency of the price, such as usd")
	flags.StringVar(&r.CoinSymbol, "coin", "", "the ticker `symbol` of the coin to pay with, such as USDT")
	flags.StringVar(&r.NetworkName, "network", "", "the `name` of the network to pay on")
	orders := flags.String("orders", "", "a `file` that remembers the orders of all runs; a new file is reported")
	for _, name := range []string{"order", "price", "amount"} {
		_ = c.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	s.prints(c, formatTable, formatJSON)
	return s.runs(c, 90*time.Second, func(ctx context.Context, _ []string) error {
		return s.createInvoice(ctx, r, *orders)
	})
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

const (
	longestInvoice = 4 * time.Minute // is longer than an invoice may take
	longestRecord  = time.Minute     // for how long a run tries to record an outcome
)

func (s *session) createInvoice(ctx context.Context, r gateway.InvoiceRequest, orders string) error {
	var guard *sqlguard.Guard
	var ended gateway.Call
	opts := []gateway.Option{gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) { ended = c }})}
	if orders != "" {
		var err error
		if guard, err = s.orderFile(ctx, orders); err != nil {
			return &invoiceError{fmt.Errorf("the file of --orders cannot be used, and this run has sent nothing: %w", err)}
		}
		opts = append(opts, gateway.WithOrderGuard(guard))
	}
	client, err := s.client(opts...)
	if err != nil {
		return err
	}
	invoice, err := client.CreateInvoice(ctx, r)
	if errors.Is(err, gateway.ErrStillSending) {
		s.tell("The time is up, and the invoice is still being sent. This run waits until its outcome is known.")
		invoice, err = outcomeOf(ctx, client, r, &ended, err)
	}
	if err == nil {
		err = s.printInvoice(invoice)
	} else {
		err = &invoiceError{err}
	}
	if ended.GuardErr != nil {
		s.tell("The file of --orders could not record the outcome: %v. This run tries again for a minute.", ended.GuardErr)
		if !isRecorded(ctx, client, guard, r.OrderID) {
			s.tell("The outcome is not recorded, and the next run does not know it.")
		}
	}
	return err
}

// outcomeOf waits for an invoice that is still being sent when the time is up, and returns its outcome.
func outcomeOf(ctx context.Context, client *gateway.Client, r gateway.InvoiceRequest, ended *gateway.Call, stillSending error) (*gateway.Invoice, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestInvoice)
	defer cancel()
	if client.Shutdown(ctx) != nil {
		return nil, stillSending
	}
	if ended.Err != nil {
		return nil, ended.Err
	}
	invoice, err := client.CreateInvoice(ctx, r) // which the guard knows now
	if err == nil {
		invoice.Replayed = false // it is of this run
	}
	return invoice, err
}

// isRecorded waits until the client has recorded the outcome of an order, and reports whether the guard knows it.
func isRecorded(ctx context.Context, client *gateway.Client, guard *sqlguard.Guard, orderID string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestRecord)
	defer cancel()
	if client.Shutdown(ctx) != nil {
		return false
	}
	o, err := guard.Order(ctx, "", orderID)
	return err == nil && o.State != gateway.OrderInFlight
}

// An invoiceRecord is a created invoice as JSON.
type invoiceRecord struct {
	OrderID  string          `json:"orderId"`
	Response json.RawMessage `json:"response"` // as the service sent it; its form is not documented; null if --orders does not have it
	Replayed bool            `json:"replayed"` // whether it exists since an earlier run
}

// printInvoice prints an invoice in one line. Indented, a response that is deeply nested could fill the memory.
func (s *session) printInvoice(invoice *gateway.Invoice) (err error) {
	if invoice.Replayed {
		s.tell("This invoice exists since an earlier run. Nothing was sent.")
	}
	if s.format == formatJSON {
		err = s.writeJSON(invoiceRecord{invoice.OrderID, invoice.Raw, invoice.Replayed}, "")
	} else {
		text := "Its response was not kept."
		if len(invoice.Raw) > 0 {
			text = "Response:\n" + escaped(string(invoice.Raw))
		}
		err = s.write(fmt.Sprintf("The invoice for order %s exists. %s\n", invoice.OrderID, text))
	}
	if err != nil {
		s.tell("%s", escaped(string(invoice.Raw))) // the only copy, without --orders
		return fmt.Errorf("the invoice exists, but stdout failed: %w", err)
	}
	return nil
}
