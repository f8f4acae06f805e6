package clitest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inBash completes a line with the script of a program. The first function is that of the package
// bash-completion, which may be missing here.
const inBash = `_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
PATH=$1:$PATH
. <("$2" completion bash)
read -ra COMP_WORDS <<<"$3"
[[ $3 != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$3 COMP_POINT=${#3} COMP_TYPE=9
compopt() { :; }
__start_$2
printf '%s\n' "${COMPREPLY[@]%% *(*}"`

// Complete has bash complete lines of a program, and requires the words, separated by spaces, that are to be
// offered. For the other shells there must be a script.
func Complete(t *testing.T, path string, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		output, err := exec.Command("bash", "--norc", "-c", inBash, "bash", filepath.Dir(path), filepath.Base(path), line).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		offered := strings.Fields(string(output))
		expected := strings.Fields(want)
		slices.Sort(offered)
		slices.Sort(expected)
		if !slices.Equal(offered, expected) {
			t.Errorf("%q: %q, want %q", line, offered, expected)
		}
	}
	for _, shell := range []string{"zsh", "fish", "powershell"} {
		if output, err := exec.Command(path, "completion", shell).CombinedOutput(); err != nil || !strings.Contains(string(output), filepath.Base(path)) {
			t.Errorf("%s: %v: %s", shell, err, output)
		}
	}
}
