package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// help prints the help of everything, of the exit codes or of commands.
func (s *session) help(args []string) error {
	name := strings.Join(args, " ")
	switch name {
	case "":
		return s.write(overview())
	case "outcomes":
		return s.write(outcomes())
	}
	text, names := "", []string{"outcomes"}
	for _, c := range commands() {
		names = append(names, c.name)
		if c.name == name || strings.HasPrefix(c.name, name+" ") {
			text += "\n" + helpOf(c)
		}
	}
	if text == "" {
		return &usageError{text: "there is no help of " + mistyped(name, names, "that name"), see: "help"}
	}
	return s.write(strings.TrimPrefix(text, "\n"))
}

func overview() string {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintf(aligned, "gateway asks a payment gateway, and creates invoices there.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(aligned, "  gateway %s\t%s\n", c.name, c.short)
	}
	fmt.Fprintf(aligned, "  gateway help COMMAND\tthe flags of a command, and examples\n")
	fmt.Fprintf(aligned, "  gateway help outcomes\tthe exit codes\n")
	_ = aligned.Flush() // to memory: cannot fail
	return text.String() + `
Settings, from the environment:
  GATEWAY_BASE_URL       the base URL, https and possibly with a path; or the flag -url
  GATEWAY_API_KEY        the API key, which is never an argument
  GATEWAY_API_KEY_FILE   a file with the key, instead
  GATEWAY_PLAIN_HTTP=1   accept a base URL that begins with http://; or the flag -plain-http
  GATEWAY_OUTPUT=json    print JSON, as -o json does
  NO_COLOR=1             print no colors
`
}

// outcomes returns the help of the exit codes.
func outcomes() string {
	text := "The exit code is the outcome:\n\n"
	for _, e := range exits() {
		text += fmt.Sprintf("%4d  %s\n      %s\n", e.code, e.meaning, strings.ReplaceAll(e.text, "\n", "\n      "))
	}
	return text + `
Stdout has the result, or nothing after an error; a withdrawal that failed, and one
that was still waited for, are results too. Stderr has the error. With -o json both are
JSON: {"error", "exitCode", "meaning", "outcome", "status", "safeToRetry"}.

Status 429 is a refusal for now (code 4): too many requests. Run the command again after the
time that it names, or after a minute; ask less often, with one process and -every.

After a code that is not listed, such as that of a signal or a crash, an invoice may
exist: it counts as 5. In a shell:

  code=0
  gateway invoice create -order A-17 -price 10.50 -amount 10.50 || code=$?
  case $code in
    0)   echo "the invoice exists" ;;
    3)   echo "nothing was sent: try again later" ;;
    2|4) echo "correct it, or wait after status 429; no invoice exists" ;;
    130) echo "interrupted before anything was sent" ;;
    *)   echo "look the order up before anything else" ;;
  esac
`
}

// helpOf returns the help of one command.
func helpOf(c command) string {
	flags, _ := (&session{}).flagSet(c)
	var options strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	text := fmt.Sprintf("usage: %s\n\n%s\n", strings.TrimSpace("gateway "+c.name+" "+c.synopsis), strings.TrimSpace(c.text))
	if options.Len() > 0 {
		text += "\nFlags:\n" + strings.ReplaceAll(options.String(), "\t", "  ")
	}
	return text
}
