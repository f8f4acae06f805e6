package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A printer prints a report as the calls are made.
type printer interface {
	begin(Report)
	call(Call)
	end(Report) error
}

// A jsonPrinter prints the report as JSON, at the end.
type jsonPrinter struct{ to io.Writer }

func (p jsonPrinter) begin(Report) {}

func (p jsonPrinter) call(Call) {}

func (p jsonPrinter) end(r Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.to, "%s\n", text)
	return err
}

// A textPrinter prints the report as text, call by call.
type textPrinter struct{ to io.Writer }

func (p textPrinter) begin(r Report) {
	if r.StandIn {
		fmt.Fprintf(p.to, "No gateway is configured: this is a stand-in inside this process, with shapes chosen at random; -seed %d repeats them.\n", r.Seed)
		return
	}
	fmt.Fprintf(p.to, "Using the gateway of GATEWAY_BASE_URL, read-only.\n")
}

func (p textPrinter) call(call Call) {
	fmt.Fprintf(p.to, "\n%s, %s\n", call.Method, call.Route)
	if call.Skipped != "" {
		fmt.Fprintf(p.to, "  skipped: %s\n", call.Skipped)
		return
	}
	fmt.Fprintf(p.to, "  %s\n", call.summary())
	for _, f := range call.Findings {
		fmt.Fprintf(p.to, "  %s\n", f)
	}
	if call.Error != "" {
		fmt.Fprintf(p.to, "  could not be read: %s\n", call.Error)
	}
}

func (p textPrinter) end(r Report) error {
	skipped := 0
	for _, call := range r.Calls {
		if call.Skipped != "" {
			skipped++
		}
	}
	_, err := fmt.Fprintf(p.to, "\nRead: %d. Could not be read: %d. Skipped: %d. Differences from docs/interface.md: %d.\n",
		len(r.Calls)-r.Unread-skipped, r.Unread, skipped, r.Findings)
	return err
}

// summary returns the line about a call that was made.
func (call Call) summary() string {
	text := "no response"
	if call.Status != 0 {
		text = strconv.Itoa(call.Status)
	}
	text += fmt.Sprintf(" in %d ms", call.Milliseconds)
	if call.Attempts > 1 {
		text += fmt.Sprintf(" and %d attempts", call.Attempts)
	}
	if call.Shape != nil {
		text += ": " + call.Shape.String()
	}
	return text
}

// String returns the finding as text.
func (f Finding) String() string {
	text := f.Kind
	if f.Pointer != "" {
		text += " " + printable(f.Pointer)
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	if f.Count > 1 {
		text += fmt.Sprintf(", %d times", f.Count)
	}
	return text
}

// String returns the shape as text.
func (s Shape) String() string {
	text := s.Kind
	switch s.Kind {
	case shapeArray:
		text = "array of " + count(s.Count, "record")
	case shapeBySymbol, shapeByCurrency:
		text += " of " + count(s.Count, "coin")
	}
	if len(s.Members) > 0 {
		var members []string
		for name, kind := range s.Members {
			members = append(members, strings.TrimPrefix(printable(name)+" "+kind, " "))
		}
		slices.Sort(members)
		text += " (" + strings.Join(members, ", ") + ")"
	}
	if !s.Enveloped {
		text += ", without the envelope"
	}
	return text
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// printable quotes a name from the response if it contains characters that are
// not printable, and truncates it.
func printable(name string) string {
	if strings.ContainsFunc(name, func(char rune) bool { return !unicode.IsPrint(char) }) {
		name = strconv.Quote(name)
	}
	return fmt.Sprintf("%.200s", name)
}
