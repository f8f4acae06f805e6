// Package commandline has what the commands of this repository share: completion for shells,
// and suggestions for what is mistyped.
package commandline

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// A Command is a subcommand, as completion sees it.
type Command struct {
	Name  string   // one or two words
	Short string   // what it does
	Words []string // what an argument may be
	Flags []*flag.Flag
}

// Shells returns the shells that there is completion for.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion returns the script that completes the commands of a program in a shell, and
// further words where a command is expected. It returns "" for another shell.
func Completion(shell, program string, commands []Command, more ...string) string {
	function := "_" + strings.ReplaceAll(program, "-", "_")
	fill := func(script, set string) string {
		names, cases := words(commands)
		var lines []string
		for _, c := range cases {
			lines = append(lines, "      "+c[0]+") "+fmt.Sprintf(set, c[1])+" ;;")
		}
		return strings.NewReplacer("{program}", program, "{function}", function,
			"{names}", strings.Join(append(names, more...), " "), "{cases}", strings.Join(lines, "\n")).Replace(script)
	}
	switch shell {
	case "bash":
		return fill(inBash, `words="%s"`)
	case "zsh":
		return fill(inZsh, "candidates=(%s)")
	case "fish":
		return inFish(program, commands)
	}
	return ""
}

// words returns the first words of all commands, and what may follow each word.
func words(commands []Command) (names []string, follows [][2]string) {
	groups := map[string][]string{}
	for _, c := range commands {
		first, second, _ := strings.Cut(c.Name, " ")
		if !slices.Contains(names, first) {
			names = append(names, first)
		}
		if second != "" {
			groups[first] = append(groups[first], second)
		}
	}
	for _, name := range names {
		if seconds := groups[name]; seconds != nil {
			follows = append(follows, [2]string{name, strings.Join(seconds, " ")})
		}
	}
	for _, c := range commands {
		after := slices.Clone(c.Words)
		for _, f := range c.Flags {
			after = append(after, "-"+f.Name)
		}
		follows = append(follows, [2]string{last(c.Name), strings.Join(after, " ")})
	}
	return names, follows
}

// last returns the last word of a name.
func last(name string) string { return name[strings.LastIndexByte(name, ' ')+1:] }

const inBash = `# {program}: completion for bash
{function}() {
  local word words="{names}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
{cases}
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F {function} {program}
`

const inZsh = `#compdef {program}
compdef {function} {program}
{function}() {
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
[ "$funcstack[1]" != _{program} ] || {function}
`

func inFish(program string, commands []Command) string {
	quoted := func(text string) string {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", `\'`) + "'"
	}
	script := "# " + program + ": completion for fish\n"
	grouped := map[string]bool{}
	for _, c := range commands {
		first, second, two := strings.Cut(c.Name, " ")
		about := c.Short
		if two {
			script += fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s' -f -a %s -d %s\n", program, first, second, quoted(c.Short))
			about = ""
		}
		if !grouped[first] {
			grouped[first] = true
			script += fmt.Sprintf("complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", program, first, quoted(about))
		}
		for _, word := range c.Words {
			script += fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s' -f -a %s\n", program, last(c.Name), word)
		}
		for _, f := range c.Flags {
			value, about := flag.UnquoteUsage(f)
			if value != "" {
				value = " -r"
			}
			script += fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s' -o %s%s -d %s\n", program, last(c.Name), f.Name, value, quoted(about))
		}
	}
	return script
}
