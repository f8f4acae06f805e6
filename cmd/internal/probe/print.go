package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// String returns the call as lines of text.
func (call Call) String() string {
	text := fmt.Sprintf("%s, %s\n", call.Method, call.Route)
	if call.Skipped != "" {
		return text + fmt.Sprintf("  skipped: %s\n", call.Skipped)
	}
	text += fmt.Sprintf("  %s\n", call.summary())
	for _, f := range call.Findings {
		text += fmt.Sprintf("  %s\n", f)
	}
	if call.Error != "" {
		text += fmt.Sprintf("  could not be read: %s\n", call.Error)
	}
	return text
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
