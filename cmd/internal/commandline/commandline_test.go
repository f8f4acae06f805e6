package commandline_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

func TestSimilar(t *testing.T) {
	t.Parallel()
	names := []string{"coins", "rates", "balance", "invoice", "withdrawal", "mock", "o"}
	for text, want := range map[string]string{
		"invioce": "invoice", "invoices": "invoice", "balanc": "balance", "coin": "coins", "mokc": "mock", "withdrawl": "withdrawal", "wit": "withdrawal",
		"pay": "", "": "", "x": "", "mo": "mock", "mock me": "", strings.Repeat("coins", 1000): "",
	} {
		if want != "" {
			want = ": did you mean -" + want + "?"
		}
		assert.Equal(t, want, commandline.Similar(text, names, "-"), text)
	}
}

func commands() []commandline.Command {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.String("coin", "", "the ticker `symbol` of a coin, it's BTC")
	flags.Bool("all", false, "all of them")
	var all []*flag.Flag
	flags.VisitAll(func(f *flag.Flag) { all = append(all, f) })
	return []commandline.Command{
		{Name: "rates", Short: "the rates", Flags: all},
		{Name: "invoice create", Short: "an invoice", Flags: all[:1]},
		{Name: "invoice show", Short: "another"},
		{Name: "completion", Words: commandline.Shells()},
	}
}

// completed are the words that each shell offers after a line.
func TestCompletion(t *testing.T) {
	t.Parallel()
	lines := map[string][]string{
		"my-shop ":                 {"rates", "invoice", "completion", "help"},
		"my-shop r":                {"rates"},
		"my-shop invoice ":         {"create", "show"},
		"my-shop invoice create -": {"-all"}, // all[0] in the order of their names
		"my-shop rates -c":         {"-coin"},
		"my-shop completion ":      {"bash", "zsh", "fish"},
	}
	run := map[string]func(script, line string) *exec.Cmd{
		"bash": func(script, line string) *exec.Cmd {
			return exec.Command("bash", "--norc", "-c", `. "$1"
read -ra COMP_WORDS <<<"$2"
[[ $2 != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_my_shop
printf '%s\n' "${COMPREPLY[@]}"`, "bash", script, line)
		},
		"zsh": func(script, line string) *exec.Cmd {
			return exec.Command("zsh", "-f", "-c", `compdef() { :; }; _files() { :; }
compadd() { shift; local c; for c in "$@"; do [[ $c == ${words[CURRENT]}* ]] && print -r -- "$c"; done; return 0 }
. "$1"
words=(${=2}); [[ $2 != *" " ]] || words+=(""); CURRENT=${#words}
_my_shop`, "zsh", script, line)
		},
		"fish": func(script, line string) *exec.Cmd {
			return exec.Command("fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, script, line)
		},
	}
	for _, shell := range commandline.Shells() {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			text := commandline.Completion(shell, "my-shop", commands(), "help")
			require.NotEmpty(t, text)
			if _, err := exec.LookPath(shell); err != nil {
				require.Empty(t, os.Getenv("ALL_SHELLS"), "%s is missing", shell)
				t.Skip("not installed; .ci/run full installs it, and requires it with ALL_SHELLS=1")
			}
			script := filepath.Join(t.TempDir(), "script")
			require.NoError(t, os.WriteFile(script, []byte(text), 0o600))
			for line, want := range lines {
				output, err := run[shell](script, line).CombinedOutput()
				require.NoError(t, err, "%s", output)
				var words []string
				for offered := range strings.Lines(string(output)) {
					word, _, _ := strings.Cut(strings.TrimSpace(offered), "\t")
					words = append(words, word)
				}
				for _, word := range want {
					if word != "help" && word != "-all" || shell != "fish" && word == "help" {
						assert.Contains(t, words, word, "%s: %q", shell, line)
					}
				}
				if line == "my-shop invoice " {
					assert.NotContains(t, words, "rates")
				}
			}
		})
	}
	assert.Empty(t, commandline.Completion("powershell", "my-shop", commands()))
}
