package main

import (
	"context"
	"flag"

	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

func completionCommand() command {
	return command{
		name: "completion", synopsis: "bash|zsh|fish", short: "completion for a shell",
		text: `
Prints a script that completes commands and flags.

  gateway-orders completion bash >/etc/bash_completion.d/gateway-orders
  gateway-orders completion zsh >"${fpath[1]}/_gateway-orders"
  gateway-orders completion fish >~/.config/fish/completions/gateway-orders.fish`,
		local: true, least: 1, most: 1, words: commandline.Shells(), argument: "the shell, bash, zsh or fish,",
		define: func(s *session, _ *flag.FlagSet) action {
			return func(context.Context) error { return s.complete(s.args[0]) }
		},
	}
}

func (s *session) complete(shell string) error {
	var all []commandline.Command
	for _, c := range commands() {
		all = append(all, commandline.Command{Name: c.name, Short: c.short, Words: c.words, Flags: flagsOf(c)})
	}
	script := commandline.Completion(shell, "gateway-orders", all, "help", "-db")
	if script == "" {
		return &usageError{text: "gateway-orders completion: the shell is bash, zsh or fish", of: "completion"}
	}
	return s.write(script)
}

// flagsOf are the flags of a command.
func flagsOf(c command) (all []*flag.Flag) {
	s := &session{}
	flags := newFlags(c.name)
	s.defineCommon(flags, c)
	c.define(s, flags)
	flags.VisitAll(func(f *flag.Flag) { all = append(all, f) })
	return all
}
