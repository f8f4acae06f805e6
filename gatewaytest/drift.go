package gatewaytest

import (
	"encoding/json"
	"strings"
)

const (
	// unknownMember is a member that no document has.
	unknownMember = `"undocumented":{"by":"gatewaytest"}`

	// unknownStatus is a status of a withdrawal that no document has.
	unknownStatus = "ON_HOLD"
)

// Drift gives the right answer as a service might that has moved on since it was
// described: with the members of [DriftFields] and the status of [DriftStatus].
// The operation is carried out.
func Drift() Fault {
	return drift("drift", func(a answer) answer { return a.withStatus().withMembers() })
}

// DriftFields gives the right answer with members that no document has, all of
// them {"undocumented":{"by":"gatewaytest"}}: one in the envelope, one in every
// record, be it in a list or in another record. A result that lists amounts by
// name (see [RatesBySymbol], [RatesByFiat] and [BalanceBySymbol]) or is an amount
// stays as it is, for a further member would be a further amount. The operation
// is carried out.
func DriftFields() Fault {
	return drift("drift of fields", answer.withMembers)
}

// DriftStatus gives the right answer, but for a withdrawal: its status is
// "ON_HOLD" in the answer, which no document has. The withdrawal itself keeps its
// status. The operation is carried out.
func DriftStatus() Fault {
	return drift("drift of status", answer.withStatus)
}

// drift answers with what change makes of the right answer.
func drift(name string, change func(answer) answer) Fault {
	return Fault{name: name, acts: true, play: func(x exchange, a answer) { x.send(change(a)) }}
}

// withMembers adds the unknown member to the envelope and to every record. It
// looks for the beginnings of records in the text: quotes within a string are
// escaped, so that none of the patterns is ever found there.
func (a answer) withMembers() answer {
	result := string(a.result)
	if a.isRecord {
		result = "{" + unknownMember + "," + strings.TrimPrefix(result, "{")
	}
	// No pattern but the first two begins with a quote, which they take away from
	// the name of a first member.
	const more = unknownMember + `,"`
	a.result = json.RawMessage(strings.NewReplacer(
		`[{"`, `[{`+more,
		`,{"`, `,{`+more,
		`network":{"`, `network":{`+more,
		`coin":{"`, `coin":{`+more,
		`invoice":{"`, `invoice":{`+more,
	).Replace(result))
	a.extra = unknownMember + ","
	return a
}

// withStatus changes the status in the answer to an inquiry. No other record
// begins with a status.
func (a answer) withStatus() answer {
	if !a.isRecord || !strings.HasPrefix(string(a.result), `{"status":`) {
		return a
	}
	var w Withdrawal
	_ = json.Unmarshal(a.result, &w) // it was made from one
	w.Status = unknownStatus
	a.result, _ = json.Marshal(w) // plain data: cannot fail
	return a
}
