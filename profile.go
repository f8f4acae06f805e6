package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A Profile is how one gateway answers where the interface states nothing. The zero value says
// nothing. As JSON it has a version, which must be 1, and is what the file of gateway probe
// --record has beside its routes; other members are skipped.
type Profile struct {
	SuccessMessage string             `json:"successMessage,omitzero"` // as of [WithSuccessMessage]; empty for none
	FinalStatuses  []WithdrawalStatus `json:"finalStatuses,omitzero"`  // which end a wait besides FAILED and COMPLETED
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
func (p *Profile) UnmarshalJSON(text []byte) error {
	var of profileVersion
	if err := profileVersionRecord.Unmarshal(text, &of); err != nil {
		return err
	}
	if of.Version != 1 {
		return fmt.Errorf("gateway.Profile from JSON: /version is %d, not 1", of.Version)
	}
	return profileRecord.Unmarshal(text, p)
}

// WithProfile sets how the gateway answers. Of a result for which there are both, the decoder of
// [WithRatesDecoder] or [WithBalanceDecoder] counts, and not the form of the profile.
func WithProfile(p Profile) Option {
	p.FinalStatuses = slices.Clone(p.FinalStatuses)
	return func(cfg *config) error {
		if reason := p.check(); reason != "" {
			return badOption("WithProfile", reason)
		}
		cfg.profile = p
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
	case slices.Contains(p.FinalStatuses, "") || slices.Contains(p.FinalStatuses, WithdrawalPending):
		return "finalStatuses must not have PENDING or an empty one"
	case r != RatesForm{} && (byColumn == byRow || byRow && (r.Currency == "" || r.Price == "")):
		return "rates must have usd, eur or both; or currency and price"
	case b.Amount == "" && b.Coin+b.Network != "":
		return "balance.amount is required"
	}
	return ""
}

const maxFormPointer = 1 << 10
