package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A Profile is how one gateway answers where the interface states nothing. The zero value says
// nothing. It is read from the file that gateway probe --record writes: JSON with a version, which must
// be 1. Members that it does not have, such as the routes of that file, are skipped.
type Profile struct {
	SuccessMessage string             `json:"successMessage,omitzero"` // as of [WithSuccessMessage]; empty for none
	FinalStatuses  []WithdrawalStatus `json:"finalStatuses,omitzero"`  // which end a wait besides FAILED and COMPLETED; not PENDING
	Rates          RatesForm          `json:"rates,omitzero"`          // of [Client.ExchangeRates]
	Balance        BalanceForm        `json:"balance,omitzero"`        // of [Client.Balance]
}

// A RatesForm is where exchange rates are: JSON pointers of RFC 6901, of at most 1 KiB. A record
// has a coin with USD, EUR or both; or one price of it, with Currency and Price. The zero value
// leaves the form to the client.
type RatesForm struct {
	List     string `json:"list,omitzero"`     // from the result to the array of records, or object of them; empty for the result itself
	Coin     string `json:"coin,omitzero"`     // from a record to its symbol; empty for the name of the member that holds the record
	USD      string `json:"usd,omitzero"`      // from a record to the price in US dollars
	EUR      string `json:"eur,omitzero"`      // from a record to the price in euros
	Currency string `json:"currency,omitzero"` // from a record to USD or EUR, in any case; a record of another currency is skipped
	Price    string `json:"price,omitzero"`    // from a record to the price in that currency
}

// A BalanceForm is where the amounts of a balance are, as a [RatesForm] is of the rates.
type BalanceForm struct {
	List    string `json:"list,omitzero"`    // from the result to the array of records, or object of them; empty for the result itself
	Coin    string `json:"coin,omitzero"`    // from a record to its symbol; empty for the name of the member that holds the record
	Network string `json:"network,omitzero"` // from a record to the name of its network; empty for none
	Amount  string `json:"amount,omitzero"`  // from a record to its amount; empty, without Coin, for the record itself
}

// A profileVersion is the version of the form of a profile in JSON.
type profileVersion struct {
	Version int `json:"version"`
}

var (
	profileRecord        = strictjson.RecordOf[Profile]()
	profileVersionRecord = strictjson.RecordOf[profileVersion]()
)

// MarshalJSON implements [json.Marshaler]. It writes the version, too.
func (p Profile) MarshalJSON() ([]byte, error) {
	type members Profile
	return json.Marshal(struct {
		profileVersion
		members
	}{profileVersion{1}, members(p)})
}

// UnmarshalJSON implements [json.Unmarshaler]. It does not check the pointers, as [WithProfile] does.
// No error has a part of the text in it.
func (p *Profile) UnmarshalJSON(text []byte) error {
	if !jsontext.Value(text).IsValid() {
		return errors.New("the profile is not JSON, or has a name twice in an object")
	}
	var of profileVersion
	err := profileVersionRecord.Unmarshal(text, &of)
	switch {
	case err == nil && of.Version != 1:
		return errors.New("the profile: /version is not 1")
	case err == nil:
		err = profileRecord.Unmarshal(text, p)
	}
	if err != nil {
		_, reason, _ := strings.Cut(err.Error(), ": ") // the name of a type
		return errors.New("the profile: " + reason)
	}
	return nil
}

// WithProfile sets how the gateway answers. Where there are both, the decoder of [WithRatesDecoder] or
// [WithBalanceDecoder] reads the result, and not the form of the profile. A SuccessMessage replaces that
// of a [WithSuccessMessage] before this option.
func WithProfile(p Profile) Option {
	p.FinalStatuses = slices.Clone(p.FinalStatuses)
	return func(cfg *config) error {
		if reason := p.check(); reason != "" {
			return badOption("WithProfile", reason)
		}
		cfg.profile, cfg.knownStatuses = p, nil
		for _, status := range p.FinalStatuses {
			cfg.knownStatuses = append(cfg.knownStatuses, string(status))
		}
		cfg.successMessage = cmp.Or(p.SuccessMessage, cfg.successMessage)
		return nil
	}
}

// check returns the member that is wrong and why, or "".
func (p Profile) check() string {
	const notPointer = ` must be a JSON pointer of at most 1 KiB, such as "/price"`
	r, b := p.Rates, p.Balance
	for _, m := range [...]struct{ name, pointer string }{
		{"rates.list", r.List},
		{"rates.coin", r.Coin},
		{"rates.usd", r.USD},
		{"rates.eur", r.EUR},
		{"rates.currency", r.Currency},
		{"rates.price", r.Price},
		{"balance.list", b.List},
		{"balance.coin", b.Coin},
		{"balance.network", b.Network},
		{"balance.amount", b.Amount},
	} {
		if len(m.pointer) > maxFormPointer || !jsontext.Pointer(m.pointer).IsValid() {
			return m.name + notPointer
		}
	}
	byColumn, byRow := r.USD != "" || r.EUR != "", r.Currency != "" || r.Price != ""
	switch {
	case len(p.SuccessMessage) > maxMessage:
		return "successMessage must be at most 1,024 bytes"
	case !canBeFinal(p.FinalStatuses):
		return "finalStatuses must not have PENDING or an empty one"
	case r != RatesForm{} && (byColumn == byRow || byRow && (r.Currency == "" || r.Price == "")):
		return "rates must have usd, eur or both; or currency and price"
	case b.Amount == "" && b.Coin+b.Network != "":
		return "balance.amount is required"
	}
	return ""
}

const maxFormPointer = 1 << 10

// listAt returns the array or object within a result whose parts are records.
func listAt(result strictjson.Node, pointer string) (strictjson.Node, *strictjson.Error) {
	list := result.At(jsontext.Pointer(pointer))
	if kind := list.Kind(); kind != '[' && kind != '{' {
		return list, result.Errorf("has no list")
	}
	return list, nil
}

// coinAt returns the symbol of the coin that a record is about, or "".
func coinAt(record strictjson.Node, pointer string) string {
	if pointer == "" {
		return record.Name()
	}
	return record.At(jsontext.Pointer(pointer)).Text()
}

// text says what is looked for.
func (f RatesForm) text() string {
	return lookedFor("rates", f.List, "coin", f.Coin, "usd", f.USD, "eur", f.EUR, "currency", f.Currency, "price", f.Price)
}

// text says what is looked for.
func (f BalanceForm) text() string {
	return lookedFor("balance", f.List, "coin", f.Coin, "network", f.Network, "amount", f.Amount)
}

// lookedFor lists the members of a form that are not empty: of a list, names and pointers.
func lookedFor(result, list string, members ...string) string {
	text := fmt.Sprintf("the profile has %s.list %q", result, list)
	for pair := range slices.Chunk(members, 2) {
		if pair[1] != "" {
			text += fmt.Sprintf(", %s %q", pair[0], pair[1])
		}
	}
	return text
}

// decoded returns what the function of a caller's option reads from a result, or records its error.
func decoded[T any](d *strictjson.Decoder, option string, decode func(json.RawMessage) ([]T, error), result json.RawMessage, check func([]T) error) []T {
	all, err := decode(result)
	if err == nil {
		err = check(all)
	}
	if err != nil {
		d.Fail(fmt.Errorf("the function of %s: %w", option, sanitize(err, d.Redactor)))
	}
	return append([]T{}, all...) // not nil
}

// firstLeftOut is the error of a list of which nothing could be read, or nil.
func firstLeftOut(d *strictjson.Decoder, read int) *strictjson.Error {
	if left := d.LeftOut(); read == 0 && len(left) > 0 {
		return left[0].Error
	}
	return nil
}
