package main

// A section is a section of INTERFACE.md with its statements, in their order.
type section struct {
	title      string
	statements []statement
}

// A statement is what INTERFACE.md says in one sentence, or in one row of a table.
type statement struct {
	text    string
	instead string // what is done about something that is not shown; empty for the rest
	claims  []claim
}

// A claim is code that makes a statement true, a change of it that makes the
// statement untrue, and the tests that fail then.
type claim struct {
	part     part
	symbol   string // a function, type, variable or constant; Type.Method or Type.Field
	old, new string // the old text is in the symbol exactly once
	tests    []string
}

// A part is a package that has read INTERFACE.md for itself. Its value is the
// directory, seen from the root.
type part string

const (
	client  part = "."
	standIn part = "gatewaytest"
)

func parts() []part { return []part{client, standIn} }

func said(text string, claims ...claim) statement { return statement{text: text, claims: claims} }

func notShown(text, instead string, claims ...claim) statement {
	return statement{text: text + ": not shown.", instead: instead, claims: claims}
}

func inClient(symbol, old, new string, tests ...string) claim {
	return claim{client, symbol, old, new, tests}
}

func inStandIn(symbol, old, new string, tests ...string) claim {
	return claim{standIn, symbol, old, new, tests}
}

func statements() []section {
	var all []section
	for _, part := range [][]section{overview(), records(), states(), lookups(), account(), rules()} {
		all = append(all, part...)
	}
	return all
}
