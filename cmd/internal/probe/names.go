package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/documented/fields"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// nameMembers puts pointers to the members of rates or of a balance that the client cannot read
// into the profile, unless more than one can be meant, a name does not say what its member is, or the
// list may not be all there is. It returns what the profile has, or lacks.
func (p *Probe) nameMembers(q question, err error) string {
	isRates := q.operation == gatewaytest.OpExchangeRates
	_, unread := errors.AsType[*gateway.DecodeError](err)
	if p.Recorder == nil || p.Recorder.last == nil || !unread || q.narrowed || !isRates && q.operation != gatewaytest.OpBalance {
		return ""
	}
	whole, _ := fields.Parse(p.Recorder.last.Body)
	envelope, _ := whole.(map[string]any)
	result := envelope["result"]
	var found []gatewaytest.Profile // with one of the two forms
	doubts := ""
	if isPage(envelope) || isPage(envelope["meta"]) {
		result, doubts = nil, " The envelope has counters, as that of a page of a list has."
	}
	eachList(result, "", func(list string, in columns) {
		if in == nil {
			doubts += fmt.Sprintf(" %q has counters, as a page of a list has.", list)
			return
		}
		coins, amounts := in.where(p.coins), in.where(decimalText.MatchString)
		isBase := len(coins) == 1 && coinName.MatchString(coins[0])
		doubts += fmt.Sprintf(" In the list %q these can be the coin: %q, the amount: %q", list, coins, amounts)
		if isRates {
			fiats := slices.DeleteFunc(in.where(currencyText.MatchString), func(at string) bool { return !slices.ContainsFunc(in[at], fiatText.MatchString) })
			doubts += fmt.Sprintf(", its currency: %q", fiats)
			prices := slices.DeleteFunc(amounts, func(at string) bool { return !priceName.MatchString(at) })
			if isBase && len(fiats) == 1 && fiatName.MatchString(fiats[0]) && len(prices) == 1 {
				found = append(found, gatewaytest.Profile{Rates: gatewaytest.RatesForm{List: list, Coin: coins[0], Currency: fiats[0], Price: prices[0]}})
			}
		} else if sums := slices.DeleteFunc(amounts, func(at string) bool { return !amountName.MatchString(at) }); isBase && (len(sums) == 1 || slices.Contains(sums, "/balance")) {
			form := gatewaytest.BalanceForm{List: list, Coin: coins[0], Amount: sums[max(slices.Index(sums, "/balance"), 0)]} // I-106
			if networks := in.where(p.networks); len(networks) == 1 && networks[0] != coins[0] {
				form.Network = networks[0]
			}
			found = append(found, gatewaytest.Profile{Balance: form})
		}
		doubts += "."
	})
	name, form := "balance", any(nil)
	if isRates {
		name = "rates"
	}
	switch {
	case len(found) != 1:
		return fmt.Sprintf("the profile does not name the members; write %q into it by hand, or use a decoder.%.1000s", name, doubts)
	case isRates:
		p.Recorder.Profile.Rates, form = found[0].Rates, found[0].Rates
	default:
		p.Recorder.Profile.Balance, form = found[0].Balance, found[0].Balance
	}
	text, _ := json.Marshal(form) // texts: cannot fail
	return fmt.Sprintf("the profile names the members: %q:%s", name, text)
}

var (
	memberName   = regexp.MustCompile(`^[a-z][A-Za-z_]{0,31}$`) // that a profile keeps
	decimalText  = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
	currencyText = regexp.MustCompile(`^[0-9A-Za-z]{2,10}$`)
	fiatText     = regexp.MustCompile(`^(?i:usd|eur)$`)

	// Pointers to members whose names say what they are: the coin that has the price, and not the one
	// that it is in, what it is in, the price, and an amount.
	coinName   = regexp.MustCompile(`^/(?i:(from|base|coin|crypto|currency)(_?(symbol|code|currency|coin|asset))?|symbol|asset|ticker|code)(/(symbol|code|ticker))?$`)
	fiatName   = regexp.MustCompile(`^/(?i:(to|quote|fiat)(_?(symbol|code|currency))?|currency(_?code)?)(/(symbol|code))?$`)
	priceName  = regexp.MustCompile(`^/(?i:price|rate|course|value|last(_?price)?|exchange_?rate)$`)
	amountName = regexp.MustCompile(`^/(?i:balance|amount|available|sum|free)$`)
)

// anyOf reports whether a text is at a path of a record in a listing, in any case.
func anyOf(listing any, path ...string) func(text string) bool {
	known := map[string]bool{}
	pairs, _ := listing.([]any)
	for _, pair := range pairs {
		known[strings.ToUpper(fields.TextAt(pair, path...))] = true
	}
	return func(text string) bool { return text != "" && known[strings.ToUpper(text)] }
}

// maxPointer is the length of the longest pointer to a list or in a record.
const maxPointer = 256

// columns are the texts and numbers of records, by their pointers from a record.
type columns map[string][]string

// isPage reports whether a list in a value may be a part of what there is.
func isPage(v any) bool {
	object, _ := v.(map[string]any)
	return slices.ContainsFunc(names(object), strictjson.IsOfPage)
}

// eachList finds the arrays of records in a value, by their pointers. In a page, it finds nothing.
func eachList(v any, pointer string, found func(list string, in columns)) {
	in, records := columns{}, 0
	switch v := v.(type) {
	case map[string]any:
		if isPage(v) {
			found(pointer, nil)
			return
		}
		for _, name := range names(v) {
			if memberName.MatchString(name) && len(pointer) < maxPointer {
				eachList(v[name], pointer+"/"+name, found)
			}
		}
	case []any:
		for _, element := range v {
			if record, isRecord := element.(map[string]any); isRecord {
				in.add("", record)
				records++
			}
		}
		for at, texts := range in { // of most records: some may be odd
			if 2*len(texts) <= records {
				delete(in, at)
			}
		}
		if len(in) > 0 {
			found(pointer, in)
		} else if records == 1 {
			eachList(v[0], pointer+"/0", found)
		}
	}
}

func (in columns) add(pointer string, record map[string]any) {
	for name, value := range record {
		switch at := pointer + "/" + name; value := value.(type) {
		case string, json.Number:
			if memberName.MatchString(name) {
				in[at] = append(in[at], fmt.Sprint(value))
			}
		case map[string]any:
			if memberName.MatchString(name) && len(at) < maxPointer {
				in.add(at, value)
			}
		}
	}
}

// where returns the pointers to the columns of which every text matches.
func (in columns) where(matches func(string) bool) (pointers []string) {
	for at, texts := range in {
		if !slices.ContainsFunc(texts, func(text string) bool { return !matches(text) }) {
			pointers = append(pointers, at)
		}
	}
	slices.Sort(pointers)
	return pointers
}
