package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/probe"
)

func (s *session) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "probe", Short: "Make every read, and print what the client cannot read", Args: cobra.NoArgs,
		Long: `Makes every read of a gateway, and changes nothing there. For each it prints the status, whether
the client can read the response, the places that differ from the documentation, the records
that the client skips, and the result, without the key. It creates no invoice.

With --invoice it creates one invoice instead, for a test account: without --yes it only says what
it would send. It prints the status, the message and the form of the response, whether the client
proves the invoice, or that there is none, and a function for WithInvoiceDecoder in Go.

A table has the beginning of a result, and -o json has all of it: give it to SetResult of
package gatewaytest, or to gateway mock, and your tests meet the same response. The exit
code is 7 if a response differs from the documentation or cannot be read.`,
		Example: `  gateway probe
  gateway probe --withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 -o json >probe.json
  gateway probe --invoice --price 1.00 --coin USDT --network Tron --amount 1.05 --yes
  jq '[.[] | select(.operation == "balance").result][0]' probe.json | curl -T - localhost:8090/_mock/results/balance`,
	}
	flags := c.Flags()
	id := flags.String("withdrawal", "", "the `ID` of a withdrawal to inquire about")
	var p invoiceProbe
	flags.BoolVar(&p.wanted, "invoice", false, "create one invoice, and print what the client makes of the response")
	flags.Func("price", "its price in the fiat currency, a `decimal` such as 1.00", into(&p.request.Price))
	flags.Func("amount", "its amount, a `decimal` such as 1.00 (default the price)", into(&p.request.Amount))
	flags.StringVar(&p.request.BaseCurrency, "currency", "", "the `code` of its fiat currency, such as usd")
	flags.StringVar(&p.request.CoinSymbol, "coin", "", "the ticker `symbol` of its coin, such as USDT")
	flags.StringVar(&p.request.NetworkName, "network", "", "the `name` of its network")
	flags.BoolVar(&p.form.Numbers, "numbers", false, "send the price and the amount as numbers")
	flags.BoolVar(&p.form.LowerCaseKeyName, "lower-case-key", false, "send the key as apikey")
	flags.BoolVar(&p.yes, "yes", false, "do create it")
	s.prints(c, formatTable, formatJSON)
	return s.runs(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
		switch {
		case p.wanted && *id != "":
			return usage("--invoice creates one invoice, and makes no read: leave --withdrawal out")
		case p.wanted:
			return s.probeInvoice(ctx, p)
		case p != (invoiceProbe{}):
			return usage("give --invoice with the flags of an invoice")
		}
		calls, differs := []probe.Call{}, false
		err := probe.Run(ctx, s.client, *id, func(call probe.Call) {
			calls, differs = append(calls, call), differs || call.Differs()
		})
		if len(calls) > 0 {
			err = errors.Join(err, s.printCalls(calls))
		}
		if err == nil && differs {
			return errDiffers
		}
		return err
	})
}

func (s *session) printCalls(calls []probe.Call) error {
	if s.format == formatJSON {
		return s.writeJSON(calls, "  ")
	}
	var text strings.Builder
	line := func(format string, args ...any) { text.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	for _, c := range calls {
		name := strings.TrimSpace(c.Operation + " " + c.Of)
		switch {
		case c.NotAsked != "":
			line("%s: not asked: %s", name, c.NotAsked)
			continue
		case c.Readable:
			line("%s: %d, readable", name, c.Status)
		default:
			line("%s: %d, not readable: %s", name, c.Status, c.Error)
		}
		for _, place := range c.Unexpected {
			line("  unexpected: %s", place)
		}
		for _, record := range c.Skipped {
			line("  skipped: %s", record)
		}
		if c.Result != nil {
			line("  result: %s", shortened(string(c.Result), 500))
		}
	}
	return s.write(text.String())
}

// An invoiceProbe is the invoice that the flags describe.
type invoiceProbe struct {
	wanted, yes bool
	request     gateway.InvoiceRequest
	form        gateway.InvoiceFormat
}

// probeInvoice creates an invoice, or says which one it would create.
func (s *session) probeInvoice(ctx context.Context, p invoiceProbe) error {
	if p.request.Price.IsZero() {
		return usage("--invoice needs --price")
	}
	if p.request.Amount.IsZero() {
		p.request.Amount = p.request.Price
	}
	p.request.OrderID = "probe-" + rand.Text()
	if err := p.request.Validate(); err != nil {
		return err
	}
	if _, err := s.client(); err != nil { // before a wrong URL is printed, which may have a password
		return err
	}
	s.tell("One invoice at %s: %s", os.Getenv(envBaseURL), p.describe())
	if !p.yes {
		return usage("nothing was sent: add --yes, with the key of a test account")
	}
	ctx, stop := withoutDeadline(ctx) // an invoice that is being sent is waited for
	defer stop()
	report, err := probe.CreateInvoice(ctx, s.client, p.request, p.form)
	if report.Status == 0 && gateway.OutcomeOf(err) == gateway.OutcomeNotSent {
		return &invoiceError{err}
	}
	if err := s.printInvoiceProbe(report); err != nil {
		return err
	}
	switch code := exitCode(&invoiceError{err}); {
	case err != nil:
		return exitError(code)
	case len(report.Unexpected) > 0:
		return errDiffers
	default:
		return nil
	}
}

// withoutDeadline returns a context that is cancelled when another one ends.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	without, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return without, func() { stop(); cancel() }
}

func (p invoiceProbe) describe() string {
	r := p.request
	text := fmt.Sprintf("order %s, price %s, amount %s", r.OrderID, digits(r.Price), digits(r.Amount))
	for _, more := range []struct{ name, value string }{{"currency", r.BaseCurrency}, {"coin", r.CoinSymbol}, {"network", r.NetworkName}} {
		if more.value != "" {
			text += fmt.Sprintf(", %s %s", more.name, more.value)
		}
	}
	key, amounts := "apiKey", "texts"
	if p.form.LowerCaseKeyName {
		key = "apikey"
	}
	if p.form.Numbers {
		amounts = "numbers"
	}
	return fmt.Sprintf("%s; the key as %s, amounts as %s", text, key, amounts)
}

// digits returns a number as it was given, with its last zeros.
func digits(amount decimal.Decimal) string { return amount.StringFixed(max(0, -amount.Exponent())) }

func (s *session) printInvoiceProbe(i probe.Invoice) error {
	if s.format == formatJSON {
		return s.writeJSON(i, "  ")
	}
	var text strings.Builder
	line := func(format string, args ...any) { text.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	line("%s: %s", i.Outcome, i.Proof)
	line("  status: %d", i.Status)
	line("  message: %q", i.Message)
	line("  result: %s", shortened(string(i.Result), 2000))
	for _, place := range i.Unexpected {
		line("  unexpected: %s", place)
	}
	if i.Decoder != "" {
		line("  with the function below: %s", i.Decoded)
	}
	for _, advice := range i.Advice {
		line("%s", advice)
	}
	return s.write(text.String() + i.Decoder)
}
