package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/probe"
)

func (s *session) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "probe", Short: "Make every read, and print what the client cannot read", Args: cobra.NoArgs,
		Long: `Makes every read of a gateway, and changes nothing there. For each it prints the status, whether
the client can read the response, the places that differ from the documentation, the records
that the client skips, and the result, without the key. It creates no invoice.

A table has the beginning of a result, and -o json has all of it: give it to SetResult of
package gatewaytest, or to gateway mock, and your tests meet the same response. The exit
code is 7 if a response differs from the documentation or cannot be read.`,
		Example: `  gateway probe
  gateway probe --withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 -o json >probe.json
  jq '[.[] | select(.operation == "balance").result][0]' probe.json | curl -T - localhost:8090/_mock/results/balance`,
	}
	id := c.Flags().String("withdrawal", "", "the `ID` of a withdrawal to inquire about")
	s.prints(c, formatTable, formatJSON)
	return s.runs(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
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
