package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/probe"
	"github.com/cryptogw/gateway/gatewaytest"
)

func (s *session) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "probe", Short: "Compares a gateway with what is documented, and changes nothing",
		Long: `Makes every call to a gateway that changes nothing, and prints a verdict: what is documented
and so, documented and not so, not stated and found to be, and what could not be asked.
The numbers are those of docs/interface.md. It creates no invoice. It prints the names
and types of what it receives, and never the key; an error may quote the beginning of a
response. The exit code is 7 if something that is documented is not so, else 1 if a call
failed, and 0 otherwise.

With --record it writes a profile: the form of each response, with no key, amount, identifier
or other value in it but the message of the successes, and of the names of members only those
that look like a program's. Where the client cannot read the rates or the balance, the profile
names their members, if only one can be meant and has a usual name. gateway mock --profile
serves a stand-in that responds likewise, and with GATEWAY_PROFILE every client reads what the
profile names. What that profile names is kept when another is recorded.`,
		Example: `  gateway probe
  gateway probe --record profile.json
  gateway probe --withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 -o json`,
	}
	id := c.Flags().String("withdrawal", "", "the `ID` of a withdrawal to inquire about")
	keyOnPublic := c.Flags().Bool("key-on-public", false, "send the key with every call, even where it is not documented")
	record := c.Flags().String("record", "", "write the profile of the gateway to this `file`")
	return s.asks(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
		return s.probe(ctx, &probe.Probe{Withdrawal: *id, KeyOnPublic: *keyOnPublic}, *record)
	})
}

// probe asks the gateway, and writes its profile to a file if one is named.
func (s *session) probe(ctx context.Context, p *probe.Probe, record string) error {
	opts := []gateway.Option{gateway.WithObserver(p.Observer())}
	if record != "" {
		p.Recorder = &probe.Recorder{Base: http.DefaultTransport}
		if name := os.Getenv(envProfile); name != "" {
			known, err := readProfile(name)
			if err != nil { // whose text may have a part of a file that is none
				return errors.New("the file of " + envProfile + " cannot be read as a profile; gateway mock --profile says why")
			}
			p.Recorder.Profile = known
		}
		opts = append(opts, gateway.WithHTTPClient(&http.Client{Transport: p.Recorder}))
	}
	if p.KeyOnPublic {
		opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
	}
	client, err := s.client(opts...)
	if err != nil {
		return err
	}
	url := os.Getenv(envBaseURL)
	if s.format != cli.FormatJSON {
		if err := s.Write(fmt.Sprintf("Asking %s; nothing is changed there.\n", cli.Printable(url))); err != nil {
			return err
		}
		p.Print = func(call probe.Call) { _ = s.Write("\n" + call.String()) } // the verdict reports a failure to write
	}
	r := p.Run(ctx, client, url)
	if s.format == cli.FormatJSON {
		err = s.WriteJSON(r)
	} else {
		err = s.Write(r.Verdict.String())
	}
	if record != "" && ctx.Err() == nil {
		err = errors.Join(err, writeProfile(record, p.Recorder.Profile))
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

// readProfile reads a profile from a file, whose name is not in the error.
func readProfile(name string) (gatewaytest.Profile, error) {
	file, err := os.Open(name) // #nosec G304 G703 -- the user chooses the file
	if err != nil {
		return gatewaytest.Profile{}, cli.Reason(err)
	}
	defer func() { _ = file.Close() }()
	profile, err := gatewaytest.ReadProfile(file)
	return profile, cli.Reason(err)
}

// writeProfile writes a profile to a file, whose name is not in the error.
func writeProfile(name string, profile gatewaytest.Profile) error {
	text, err := json.MarshalIndent(profile, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil { // #nosec G306 -- nothing in it is a secret
		return fmt.Errorf("the file of --record cannot be written: %w", cli.Reason(err))
	}
	return nil
}
