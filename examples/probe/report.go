package main

// A Report is what a probe has found. It is what -json prints: every field is
// always there, and none is ever renamed or given another meaning.
type Report struct {
	StandIn  bool   `json:"standIn"`  // no gateway was configured: this is of a stand-in
	Seed     uint64 `json:"seed"`     // of the shapes that the stand-in used; 0 without one
	Unread   int    `json:"unread"`   // how many calls failed; not 0 is exit code 1
	Findings int    `json:"findings"` // how many there are in all calls
	Calls    []Call `json:"calls"`    // in the order in which they were made
}

// A Call is a question to the gateway, and its answer.
type Call struct {
	Method       string    `json:"method"`       // of gateway.Client, such as "Balance"
	Route        string    `json:"route"`        // as INTERFACE.md has it; it tells calls of one method apart
	Skipped      string    `json:"skipped"`      // why it was not made; "" when it was
	Status       int       `json:"status"`       // the HTTP status; 0 when there was no answer
	Attempts     int       `json:"attempts"`     // how often it was tried
	Milliseconds int64     `json:"milliseconds"` // how long it took, further attempts included
	Shape        *Shape    `json:"shape"`        // of the result; null when there was none to look at
	Findings     []Finding `json:"findings"`     // where the answer is not as INTERFACE.md has it
	Error        string    `json:"error"`        // why the client can not read the answer; "" when it can
}

// A Shape is how a result is built.
type Shape struct {
	// Kind is one of the shapes below, or "unknown".
	Kind string `json:"kind"`
	// Count is how many records, amounts or coins there are; 0 when the shape is
	// unknown.
	Count int `json:"count"`
	// Enveloped reports whether it stands in an envelope, as it should.
	Enveloped bool `json:"enveloped"`
	// Members are the names and JSON types of what is in the records, "string or
	// number" where they differ, at most 50 names. The name of an amount that
	// stands alone is "". There are none for a record that INTERFACE.md shows.
	Members map[string]string `json:"members"`
}

// Shapes of a result.
const (
	shapeRecord     = "one record"
	shapeArray      = "array of records"
	shapeBySymbol   = "map by symbol"
	shapeByCurrency = "map by currency"
	shapeAmount     = "bare amount"
	shapeUnknown    = "unknown"
)

// A Finding is something in an answer that is not as INTERFACE.md has it.
type Finding struct {
	Kind    string `json:"kind"`    // one of the kinds below
	Pointer string `json:"pointer"` // where it was met first, as a JSON pointer; "" is the whole answer
	Detail  string `json:"detail"`  // what there is instead, where that says more
	Count   int    `json:"count"`   // how often it was met, in all records
}

// Kinds of a finding.
const (
	unknownField  = "unknown field"  // INTERFACE.md does not have it, or, in a body that it does not show, this client
	missingField  = "missing field"  // INTERFACE.md has it
	otherType     = "other type"     // another JSON type
	otherFormat   = "other format"   // text that is no UUID, decimal number or timestamp
	unknownStatus = "unknown status" // of a withdrawal
	mismatch      = "mismatch"       // networkId or coinId is not the id of the record beside it
	otherMessage  = "other message"  // than the constant one of a success
	otherCode     = "other code"     // another HTTP status than the documented one
)
