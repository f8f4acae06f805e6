package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Short: "Ask whether the gateway accepts the key, and whether the orders can be kept", Args: cobra.NoArgs,
		Long: `Reads the balance once, which shows whether the gateway can be reached and accepts the key; without
a key it reads the coins. If ` + envDB + ` names a database, it checks the table of the orders
too, with the rights that a shop needs. It changes nothing.`,
		Example: `  gateway check`,
	}
	return s.runs(c, time.Minute, func(ctx context.Context, _ []string) error {
		var opts []gateway.Option
		var unusable error
		said := "The gateway can be reached."
		if os.Getenv(envAPIKey) != "" || os.Getenv(envAPIKeyFile) != "" {
			said = "The gateway accepts the key."
		}
		if os.Getenv(envDB) != "" {
			guard, err := s.guard(ctx)
			if unusable = err; err == nil {
				opts = append(opts, gateway.WithOrderGuard(guard))
				said += " The table " + s.table + " can be used."
			}
		}
		client, err := s.client(opts...)
		if err == nil {
			err = client.Check(ctx)
		}
		if err := errors.Join(err, unusable); err != nil {
			return err
		}
		return s.write(said + "\n")
	})
}

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s.started = true
			return s.write("gateway version " + version() + "\n")
		},
	}
}

// version returns the version of the client, the commit if it is known, and what the command was built with.
func version() string {
	commit, changed := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = ", commit " + setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("v%s%s%s, %s, %s/%s", gateway.Version, commit, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
