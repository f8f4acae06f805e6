package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/probe"
)

func (s *session) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "probe", Short: "Compare a gateway with its documentation, and change nothing", Args: cobra.NoArgs,
		Long: `Makes every call to a gateway that changes nothing, and prints a verdict: what is documented
and so, documented and not so, not stated and found to be, and what could not be asked.
The numbers are those of docs/interface.md. It creates no invoice. It prints the names
and types of what it receives, and never the key; an error may quote the beginning of a
response. The exit code is 7 if something that is documented is not so, else 1 if a call
failed, and 0 otherwise.`,
		Example: `  gateway probe
  gateway probe --withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 -o json`,
	}
	id := c.Flags().String("withdrawal", "", "the `ID` of a withdrawal to inquire about")
	keyOnPublic := c.Flags().Bool("key-on-public", false, "send the key with every call, even where it is not documented")
	return s.asks(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
		return s.probe(ctx, &probe.Probe{Withdrawal: *id, KeyOnPublic: *keyOnPublic})
	})
}

// probe asks the gateway.
func (s *session) probe(ctx context.Context, p *probe.Probe) error {
	opts := []gateway.Option{gateway.WithObserver(p.Observer())}
	if p.KeyOnPublic {
		opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
	}
	client, err := s.client(opts...)
	if err != nil {
		return err
	}
	url := os.Getenv(envBaseURL)
	if s.format == formatTable {
		if err := s.write(fmt.Sprintf("Asking %s; nothing is changed there.\n", printable(url))); err != nil {
			return err
		}
		p.Print = func(call probe.Call) { _ = s.write("\n" + call.String()) } // the verdict reports a failure to write
	}
	r := p.Run(ctx, client, url)
	if s.format == formatJSON {
		err = s.print(r, nil, nil)
	} else {
		err = s.write(r.Verdict.String())
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return r.Err()
	}
}
