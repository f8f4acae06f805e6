package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

func versionCommand() command {
	return command{
		name: "version", local: true, short: "the version of this program",
		text: `Prints the version of this program and of Go.

  gateway version`,
		define: func(*flag.FlagSet) action {
			return func(_ context.Context, s *session) error {
				version := "unknown"
				if info, ok := debug.ReadBuildInfo(); ok {
					version = info.Main.Version
				}
				return s.write(fmt.Sprintf("gateway %s, %s, %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
			}
		},
	}
}

func completionCommand() command {
	return command{
		name: "completion", synopsis: "bash|zsh|fish", local: true, least: 1, most: 1, words: commandline.Shells(),
		short: "completion for a shell",
		text: `Prints a script that completes commands and flags.

  gateway completion bash >/etc/bash_completion.d/gateway
  gateway completion zsh >"${fpath[1]}/_gateway"
  gateway completion fish >~/.config/fish/completions/gateway.fish`,
		define: func(*flag.FlagSet) action {
			return func(_ context.Context, s *session) error {
				script := commandline.Completion(s.args[0], "gateway", completed(), "help")
				if script == "" {
					return usage(completionCommand(), "the shell is bash, zsh or fish")
				}
				return s.write(script)
			}
		},
	}
}

// completed returns the commands as completion sees them.
func completed() (all []commandline.Command) {
	for _, c := range commands() {
		of := commandline.Command{Name: c.name, Short: c.short, Words: c.words}
		flags, _ := (&session{}).flagSet(c)
		flags.VisitAll(func(f *flag.Flag) { of.Flags = append(of.Flags, f) })
		all = append(all, of)
	}
	return all
}
