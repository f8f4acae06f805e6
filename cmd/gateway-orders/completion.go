package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

func completionCommand() command {
	return command{
		name: "completion", synopsis: "bash|zsh|fish", short: "completion for a shell",
		text: `
Prints a script that completes commands and flags.

  gateway-orders completion bash >/etc/bash_completion.d/gateway-orders
  gateway-orders completion zsh >"${fpath[1]}/_gateway-orders"
  gateway-orders completion fish >~/.config/fish/completions/gateway-orders.fish`,
		local: true, least: 1, most: 1, words: []string{"bash", "zsh", "fish"}, argument: "the shell, bash, zsh or fish,",
		define: func(s *session, _ *flag.FlagSet) action {
			return func(context.Context) error { return s.complete(s.args[0]) }
		},
	}
}

func (s *session) complete(shell string) error {
	switch shell {
	case "bash":
		return s.write(filled(inBash, `words="%s"`))
	case "zsh":
		return s.write(filled(inZsh, "candidates=(%s)"))
	case "fish":
		return s.write(inFish())
	default:
		return &usageError{text: "gateway-orders completion: the shell is bash, zsh or fish", of: "completion"}
	}
}

const inBash = `# gateway-orders: completion for bash
_gateway_orders() {
  local word words="{names}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
{cases}
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gateway_orders gateway-orders
`

const inZsh = `#compdef gateway-orders
compdef _gateway_orders gateway-orders
_gateway_orders() {
  local word
  local -a candidates=({names})
  for word in "${(@)words[2,CURRENT-1]}"; do
    case $word in
{cases}
    esac
  done
  compadd -- $candidates
  _files
}
[ "$funcstack[1]" != _gateway-orders ] || _gateway_orders
`

// filled has a case for each command, which says what may follow it.
func filled(script, set string) string {
	var names, cases []string
	for _, c := range commands() {
		words := append([]string{}, c.words...)
		for _, f := range flagsOf(c) {
			words = append(words, "-"+f.Name)
		}
		names = append(names, c.name)
		cases = append(cases, "      "+c.name+") "+fmt.Sprintf(set, strings.Join(words, " "))+" ;;")
	}
	names = append(names, "help", "-db")
	return strings.NewReplacer("{names}", strings.Join(names, " "), "{cases}", strings.Join(cases, "\n")).Replace(script)
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

func inFish() string {
	quoted := func(text string) string {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", `\'`) + "'"
	}
	script := "# gateway-orders: completion for fish\n"
	for _, c := range commands() {
		script += fmt.Sprintf("complete -c gateway-orders -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quoted(c.short))
		for _, word := range c.words {
			script += fmt.Sprintf("complete -c gateway-orders -n '__fish_seen_subcommand_from %s' -f -a %s\n", c.name, word)
		}
		for _, f := range flagsOf(c) {
			value, about := flag.UnquoteUsage(f)
			if value != "" {
				value = " -r"
			}
			script += fmt.Sprintf("complete -c gateway-orders -n '__fish_seen_subcommand_from %s' -o %s%s -d %s\n", c.name, f.Name, value, quoted(about))
		}
	}
	return script
}
