package gatewaytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Profile is how one gateway responds to the requests that change nothing: the status of
// each response, the names of its members, and what kind of text or number each is. No
// value of a response is in it but the message of a success, nor a name that may be a value:
// of the members that are not documented it keeps those that look like the names
// of a program, and no text of the same response. Its fields are what a client must know of
// the gateway, which reads them from the same file. `gateway probe --record` makes a profile,
// and [WithProfile] a server that responds likewise. Where rates or a balance
// were not recorded, they have the members that the fields name and no others; the rest has its usual form. The zero Profile is empty: a server with it
// responds as one without. A Profile is not safe for concurrent use.
type Profile struct {
	SuccessMessage string      // of every success; empty for the documented one
	FinalStatuses  []string    // of a withdrawal, beside the documented ones; a server ignores them
	Rates          RatesForm   // the members of the exchange rates; the zero value names none
	Balance        BalanceForm // the members of a balance; the zero value names none

	routes map[string]*profiled
}

// A RatesForm names the members of exchange rates with JSON pointers (RFC 6901).
type RatesForm struct {
	List     string `json:"list,omitempty"`     // from the result to its records, in an array or by symbol; empty for the result itself
	Coin     string `json:"coin,omitempty"`     // from a record to the symbol; empty if the record is the member of that name
	USD      string `json:"usd,omitempty"`      // from a record to its price in US dollars
	EUR      string `json:"eur,omitempty"`      // from a record to its price in euros
	Currency string `json:"currency,omitempty"` // from a record to its currency, where a coin has one record for each
	Price    string `json:"price,omitempty"`    // from such a record to its price
}

// A BalanceForm names the members of a balance with JSON pointers (RFC 6901).
type BalanceForm struct {
	List    string `json:"list,omitempty"`    // as in a [RatesForm]
	Coin    string `json:"coin,omitempty"`    // as in a [RatesForm]
	Network string `json:"network,omitempty"` // from a record to the name of the network; empty if it has none
	Amount  string `json:"amount,omitempty"`  // from a record to its amount
}

// A profiled route is what a gateway responds on it.
type profiled struct {
	Status int   `json:"status"`
	Keyed  bool  `json:"keyed"`          // whether the request had a key
	Body   *form `json:"body,omitempty"` // nil if the body is not JSON
}

func (r *profiled) refuses() bool { return r.Status < 200 || r.Status > 299 }

// profileVersion is the version of the JSON of a profile.
const profileVersion = 1

// maxProfile is the largest JSON of a profile, in bytes.
const maxProfile = 4 << 20

// An Exchange is a request to a gateway and its response, for [Profile.Record].
type Exchange struct {
	Operation Operation // of the request
	Narrowed  bool      // whether a balance is asked for a coin or a network
	Keyed     bool      // whether the request had a key
	Status    int       // of the response
	Body      []byte    // of the response
}

// Record adds what a gateway responds to the profile, in the place of what it has for the
// same kind of request. Invoices are not recorded. It returns an error if the operation is
// unknown or creates something, or if the status is not between 100 and 999.
func (p *Profile) Record(e Exchange) error {
	switch {
	case !e.Operation.known() || e.Operation == AnyOperation || e.Operation == OpCreateInvoice:
		return fmt.Errorf("gatewaytest: Record of operation %q, want one that reads", e.Operation)
	case e.Status < 100 || e.Status > 999:
		return fmt.Errorf("gatewaytest: Record of status %d, want 100 to 999", e.Status)
	}
	route := &profiled{Status: e.Status, Keyed: e.Keyed}
	if v, err := parseValue(e.Body); err == nil {
		route.Body = observe(v, !route.refuses() && (e.Operation == OpExchangeRates || e.Operation == OpBalance))
	}
	if p.routes == nil {
		p.routes = map[string]*profiled{}
	}
	p.routes[profileRoute(e.Operation, e.Narrowed)] = route
	return nil
}

// narrowed ends the name of the route of a balance for a coin or a network.
const narrowed = " of one"

func profileRoute(op Operation, isNarrowed bool) string {
	if op == OpBalance && isNarrowed {
		return string(op) + narrowed
	}
	return string(op)
}

// profileJSON is the JSON form of a profile.
type profileJSON struct {
	Version        int                  `json:"version"`
	SuccessMessage string               `json:"successMessage,omitempty"`
	FinalStatuses  []string             `json:"finalStatuses,omitempty"`
	Rates          RatesForm            `json:"rates,omitzero"`
	Balance        BalanceForm          `json:"balance,omitzero"`
	Routes         map[string]*profiled `json:"routes"`
}

// MarshalJSON implements [json.Marshaler]. The order of the names is that of the responses.
func (p Profile) MarshalJSON() ([]byte, error) {
	return json.Marshal(profileJSON{profileVersion, p.SuccessMessage, p.FinalStatuses, p.Rates, p.Balance, p.routes})
}

// ReadProfile reads the JSON of a profile, of at most 4 MiB. It returns an error if it is
// not the JSON of a profile that this version of the package knows.
func ReadProfile(from io.Reader) (Profile, error) {
	decoder := json.NewDecoder(io.LimitReader(from, maxProfile))
	decoder.DisallowUnknownFields()
	var read profileJSON
	if err := decoder.Decode(&read); err != nil {
		return Profile{}, fmt.Errorf("gatewaytest: it is not a profile: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Profile{}, errors.New("gatewaytest: there is more after the end of the profile, or more than 4 MiB")
	}
	if read.Version != profileVersion {
		return Profile{}, fmt.Errorf("gatewaytest: the version of the profile is %d, and this program knows %d", read.Version, profileVersion)
	}
	for name, route := range read.Routes {
		op := Operation(strings.TrimSuffix(name, narrowed))
		if route == nil || !op.known() || op == OpCreateInvoice || op == AnyOperation || profileRoute(op, strings.HasSuffix(name, narrowed)) != name ||
			route.Status < 100 || route.Status > 999 {
			return Profile{}, fmt.Errorf("gatewaytest: route %.64q of the profile is not valid", name)
		}
	}
	r, b := read.Rates, read.Balance
	for _, pointer := range []string{r.List, r.Coin, r.USD, r.EUR, r.Currency, r.Price, b.List, b.Coin, b.Network, b.Amount} {
		if !isPointer(pointer) {
			return Profile{}, fmt.Errorf("gatewaytest: %.64q in the profile is not a JSON pointer: it begins with a slash", pointer)
		}
	}
	return Profile{read.SuccessMessage, read.FinalStatuses, r, b, read.Routes}, nil
}

// WithProfile makes a server respond as the gateway that the profile was recorded of, with
// the data of the server. It replaces the shapes of [Server.SetShape], but for that of an
// invoice. Symbols, and identifiers that are not UUIDs, may be asked for as they are
// listed. Where the gateway refused a request, the server refuses those that have a
// key, or none, likewise.
func WithProfile(p Profile) Option {
	return func(c *config) { c.profile = p }
}

// profile replaces a response by what the gateway of the profile responds. The lock is held.
func (s *Server) profile(c *call, usual response) response {
	if usual.status <= 299 && s.profiles.SuccessMessage != "" {
		usual.message, usual.invented = s.profiles.SuccessMessage, append(usual.invented, "profile")
	}
	query := c.r.URL.Query()
	route := s.profiles.routes[profileRoute(c.op, query.Get("coinSymbol") != "" || query.Get("networkName") != "")]
	if route == nil {
		if named := s.namedMembers(c); named != nil && usual.status <= 299 {
			usual.result, usual.invented = named, append(usual.invented, "profile")
		}
		return usual
	}
	if refuses := route.refuses(); refuses && route.Keyed != (c.keyIn != "") || !refuses && usual.status > 299 {
		return usual
	}
	resp := response{status: route.Status, isRecord: usual.isRecord, invented: []string{"profile"}}
	list := map[Operation]string{OpExchangeRates: s.profiles.Rates.List, OpBalance: s.profiles.Balance.List}[c.op]
	switch {
	case route.Body == nil:
		resp.custom, resp.result = true, json.RawMessage("<html><body>not JSON</body></html>")
	case route.refuses():
		resp.fillAround(route.Body, "", "", nil)
	default:
		resp.fillAround(route.Body, s.profiles.SuccessMessage, list, s.recordsFor(c))
	}
	return resp
}

// namedMembers returns the rates or balances that a request is about, as the pointers of the profile
// read them, or nil if it names none. The lock is held.
func (s *Server) namedMembers(c *call) json.RawMessage {
	r, b := s.profiles.Rates, s.profiles.Balance
	records, byName, list, coin := []any{}, map[string]any{}, r.List, r.Coin
	add := func(symbol string, members ...string) { // each text before its pointer
		of := record{}
		of.put(symbol, coin)
		for m := range slices.Chunk(members, 2) {
			of.put(m[0], m[1])
		}
		records, byName[symbol] = append(records, of), of
	}
	switch {
	case c.op == OpExchangeRates && r.Currency != "":
		for _, rate := range s.rates {
			add(rate.Symbol, "USD", r.Currency, rate.USD, r.Price)
			add(rate.Symbol, "EUR", r.Currency, rate.EUR, r.Price)
		}
	case c.op == OpExchangeRates && r != RatesForm{}:
		for _, rate := range s.rates {
			add(rate.Symbol, rate.USD, r.USD, rate.EUR, r.EUR)
		}
	case c.op == OpBalance && b != BalanceForm{} && b.Coin == "": // one for all networks of a coin
		list, coin = b.List, b.Coin
		for symbol, sum := range bySymbol(s.balancesFor(c)) {
			if add(symbol, sum, b.Amount); b.Amount == "" {
				byName[symbol] = sum
			}
		}
	case c.op == OpBalance && b != BalanceForm{}:
		list, coin = b.List, b.Coin
		for _, e := range s.balancesFor(c) {
			add(e.CoinSymbol, e.NetworkName, b.Network, e.Balance, b.Amount)
		}
	default:
		return nil
	}
	result := any(records)
	if coin == "" {
		result = byName
	}
	for _, name := range slices.Backward(tokens(list)) {
		if name == "0" {
			result = []any{result}
		} else {
			result = map[string]any{name: result}
		}
	}
	text, _ := json.Marshal(result) // texts: cannot fail
	return text
}

// fillAround fills the form of a whole response, with a message unless it is empty, and with
// the data in its result, at a JSON pointer.
func (r *response) fillAround(body *form, message, list string, data any) {
	r.custom = true
	if !slices.ContainsFunc(body.members, func(m member) bool { return m.name == "result" }) {
		r.result = body.fillAt(tokens(list), data)
		return
	}
	parts, side := [2]string{"{", ""}, 0 // before the result and after it
	for i, m := range body.members {
		if i > 0 {
			parts[side] += ","
		}
		parts[side] += quote(m.name) + ":"
		switch {
		case m.name == "result":
			r.result, side = m.form.fillAt(tokens(list), data), 1
		case m.name == "message" && message != "":
			parts[side] += quote(message)
		default:
			parts[side] += string(m.form.fill(nil, m.name, 0))
		}
	}
	r.open, r.end = parts[0], parts[1]+"}"
}

// recordsFor returns the records that a request is about. The lock is held.
func (s *Server) recordsFor(c *call) []record {
	list := []record{}
	switch c.op {
	case OpExchangeRates:
		for _, r := range s.rates {
			list = append(list, s.profiledRates(r)...)
		}
	case OpBalance:
		for _, b := range s.balancesFor(c) {
			of := record{"": b.Balance, "networkName": b.NetworkName, "network": recordOf(Network{ID: seedID("network " + b.NetworkName), Name: b.NetworkName, IsActive: true, CreatedAt: seedCreated, UpdatedAt: seedUpdated}, b.NetworkName)}
			of.name(b.CoinSymbol, s.coin(b.CoinSymbol))
			of.set(b.Balance, "balance", "amount", "available")
			f := s.profiles.Balance
			of.put(b.CoinSymbol, f.Coin)
			of.put(b.NetworkName, f.Network)
			of.put(b.Balance, f.Amount)
			list = append(list, of)
		}
	case OpWithdrawal:
		if w := s.withdrawal(c.args[0]); w != nil {
			list = append(list, recordOf(w.Withdrawal, ""))
		}
	default:
		for _, p := range s.pairsFor(c) {
			of := recordOf(p, "")
			of["coin"], of["network"] = recordOf(p.Coin, p.Coin.Symbol), recordOf(p.Network, p.Network.Name)
			list = append(list, of)
		}
	}
	return list
}

// profiledRates returns the record of the rates of a coin, or one for each currency if the
// profile names the member that has it. The lock is held.
func (s *Server) profiledRates(r Rate) []record {
	f := s.profiles.Rates
	newRecord := func() record {
		of := record{"": r.USD}
		of.name(r.Symbol, s.coin(r.Symbol))
		of.set(r.USD, "usd", "USD")
		of.set(r.EUR, "eur", "EUR")
		of.put(r.Symbol, f.Coin)
		return of
	}
	if f.Currency == "" {
		of := newRecord()
		of.put(r.USD, f.USD)
		of.put(r.EUR, f.EUR)
		return []record{of}
	}
	var all []record
	for _, in := range [][2]string{{"USD", r.USD}, {"EUR", r.EUR}} {
		if in[1] != "" {
			of := newRecord()
			of.put(in[0], f.Currency)
			of.put(in[1], f.Price)
			all = append(all, of)
		}
	}
	return all
}

// put sets the member at a JSON pointer to a text, if neither is empty.
func (r record) put(text, pointer string) {
	if text == "" || pointer == "" {
		return
	}
	names := tokens(pointer)
	last := len(names) - 1
	for _, name := range names[:last] {
		inner, isRecord := r[name].(record)
		if !isRecord {
			inner = record{}
			r[name] = inner
		}
		r = inner
	}
	r[names[last]] = text
}

// set sets members to a text that is not empty.
func (r record) set(text string, names ...string) {
	for _, name := range names {
		if text != "" {
			r[name] = text
		}
	}
}

// name sets the members that name a coin.
func (r record) name(symbol string, coin Coin) {
	r.set(symbol, "symbol", "coinSymbol", "currency")
	r["coin"] = recordOf(coin, symbol)
}

// recordOf returns the members of a struct, and a text that stands for it.
func recordOf(of any, name string) record {
	encoded, _ := json.Marshal(of) // plain data: cannot fail
	v, _ := parseValue(encoded)
	r := record{"": name}
	for i, member := range v.names {
		switch scalar := v.elements[i].scalar; {
		case scalar == nil: // another record, which the caller sets
		case scalar[0] == '"':
			r[member], _ = text(scalar)
		case scalar[0] == 't' || scalar[0] == 'f':
			r[member] = scalar[0] == 't'
		default:
			r[member] = json.Number(scalar)
		}
	}
	return r
}

// same reports whether a text in a request is one of the server's: with a profile, in any
// case and in the form that an identifier has that is none.
func (s *Server) same(own, asked string) bool {
	return own == asked || s.profiles.routes != nil &&
		(strings.EqualFold(own, asked) || unformatted(kindUUID, own) == asked)
}
