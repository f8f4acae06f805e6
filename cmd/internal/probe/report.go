package probe

// A Report is the result of a probe, as JSON too. All members are always present, and
// none is ever renamed or redefined.
type Report struct {
	URL      string  `json:"url"`      // the base URL that was asked
	Verdict  Verdict `json:"verdict"`  // for people
	Unread   int     `json:"unread"`   // the number of calls that failed
	Findings int     `json:"findings"` // the number of findings about all calls
	Calls    []Call  `json:"calls"`    // in the order in which they were made
}

// A Verdict compares the gateway with docs/interface.md.
type Verdict struct {
	So       []Line `json:"documentedAndSo"`
	NotSo    []Line `json:"documentedAndNotSo"`
	Found    []Line `json:"notStatedAndFound"`
	NotAsked []Line `json:"couldNotBeAsked"`
}

// A Line of a verdict is about one call.
type Line struct {
	Statements string `json:"statements"` // of docs/interface.md, such as "I-57 to I-73"; "" for none
	Route      string `json:"route"`
	Text       string `json:"text"`
}

// A Call is a call to the gateway and its response.
type Call struct {
	Method       string    `json:"method"`       // of gateway.Client, such as "Balance"
	Route        string    `json:"route"`        // as in docs/interface.md; it distinguishes the calls of one method
	Skipped      string    `json:"skipped"`      // why it was not made; "" if it was
	Status       int       `json:"status"`       // the HTTP status; 0 without a response
	Attempts     int       `json:"attempts"`     // the number of attempts
	Milliseconds int64     `json:"milliseconds"` // the duration of all attempts
	Shape        *Shape    `json:"shape"`        // of the result; null without one
	Findings     []Finding `json:"findings"`     // the differences of the response from docs/interface.md
	Error        string    `json:"error"`        // why the client cannot read the response; "" if it can

	question question
	refused  bool // whether there is no response to examine: an error, or none at all
}

// A Shape is the structure of a result.
type Shape struct {
	// Kind is one of the shapes below, or "unknown".
	Kind string `json:"kind"`
	// Count is the number of records, amounts or coins; 0 if the shape is unknown.
	Count int `json:"count"`
	// Enveloped reports whether the result is in an envelope, as documented.
	Enveloped bool `json:"enveloped"`
	// Members has the names and JSON types of the members of the records, "number
	// or string" if they differ, for at most 50 names. The name of a bare amount is
	// "". It is empty for a documented record.
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

// A Finding is a difference of a response from docs/interface.md.
type Finding struct {
	Kind      string `json:"kind"`      // one of the kinds below, or of a fields.Difference
	Statement string `json:"statement"` // of docs/interface.md
	Pointer   string `json:"pointer"`   // its first place, as a JSON pointer; "" is the whole response
	Detail    string `json:"detail"`    // what the response has instead, if that is not obvious
	Count     int    `json:"count"`     // the number of places in all records
}

// Kinds of a finding, beside those of package fields.
const (
	otherMessage = "other message" // not the constant message of a success
	otherCode    = "other code"    // not the documented HTTP status
	noEnvelope   = "no envelope"   // around a result
	leftOut      = "left out"      // the client cannot read a record and goes on
)
