package gatewaytest

import (
	"encoding/json"
	"strings"
)

const (
	// unknownMember is a member that is not documented.
	unknownMember = `"undocumented":{"by":"gatewaytest"}`

	// unknownStatus is a status of a withdrawal that is not documented.
	unknownStatus = "ON_HOLD"
)

// FaultDrift responds as a service that has changed since it was described: with the
// members of [FaultDriftFields] and the status of [FaultDriftStatus]. The operation is
// carried out.
func FaultDrift() Fault {
	return drift("drift", func(resp response) response { return resp.withStatus().withMembers() })
}

// FaultDriftFields adds members that are not documented to the usual response, all of
// them {"undocumented":{"by":"gatewaytest"}}: one to the envelope and one to each
// record, including those in a list or in another record. A result that is an
// amount or that maps names to amounts (see [RatesBySymbol], [RatesByFiat] and
// [BalanceBySymbol]) is unchanged, because another member would be another
// amount. The operation is carried out.
func FaultDriftFields() Fault {
	return drift("drift-fields", response.withMembers)
}

// FaultDriftStatus sends the usual response, except that the status of a withdrawal is
// "ON_HOLD", which is not documented. The withdrawal itself keeps its status. The
// operation is carried out.
func FaultDriftStatus() Fault {
	return drift("drift-status", response.withStatus)
}

// drift sends the usual response after change has altered it.
func drift(name string, change func(response) response) Fault {
	return Fault{name: name, carriesOut: true, respond: func(x responder, resp response) { x.send(change(resp)) }}
}

// withMembers adds the unknown member to the envelope and to every record. It
// searches the text for the beginnings of records: quotes within a string are
// escaped, so that no pattern matches there.
func (r response) withMembers() response {
	result := string(r.result)
	if r.isRecord {
		result = "{" + unknownMember + "," + strings.TrimPrefix(result, "{")
	}
	// Every pattern ends with the quote that opens the name of the first member.
	const more = unknownMember + `,"`
	r.result = json.RawMessage(strings.NewReplacer(
		`[{"`, `[{`+more,
		`,{"`, `,{`+more,
		`network":{"`, `network":{`+more,
		`coin":{"`, `coin":{`+more,
		`invoice":{"`, `invoice":{`+more,
	).Replace(result))
	r.extra = unknownMember + ","
	if rest, isObject := strings.CutPrefix(r.open, "{"); isObject {
		r.open = "{" + r.extra + rest
	}
	return r
}

// withStatus changes the status in the response to an inquiry. No other record
// begins with a status.
func (r response) withStatus() response {
	if !r.isRecord || !strings.HasPrefix(string(r.result), `{"status":`) {
		return r
	}
	var w Withdrawal
	_ = json.Unmarshal(r.result, &w) // it is an encoded Withdrawal: cannot fail
	w.Status = unknownStatus
	r.result, _ = json.Marshal(w) // plain data: cannot fail
	return r
}
