package gatewaytest

import (
	"encoding/json"
	"strings"
)

// unknownMember is a member that is not documented.
const unknownMember = `"undocumented":{"by":"gatewaytest"}`

// FaultDrift responds as a service that has changed since it was described. It adds members
// that are not documented to the usual response, all of them
// "undocumented":{"by":"gatewaytest"}: one to the envelope and one to each record, including
// those in a list or in another record. A result that is an amount or that maps names to
// amounts (see [RatesBySymbol], [RatesByFiat] and [BalanceBySymbol]) is unchanged, because
// another member would be another amount. The operation is carried out. It is met like
// [FaultEdit].
func FaultDrift() Fault {
	return Fault{name: "drift", alter: []func(*response){(*response).addMembers}}
}

// addMembers adds the unknown member to the envelope and to every record. It
// searches the text for the beginnings of records: quotes within a string are
// escaped, so that no pattern matches there.
func (r *response) addMembers() {
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
}
