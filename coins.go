package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
)

// A CoinNetwork is a coin on a network. Amounts are assumed to be in units of the coin. Compare decimals
// with Equal: == does not compare them by value.
//
// A payment needs ID, Depositable, the name of the network, whether network and coin are active, and of the coin its
// ID, Symbol, Precision and MinAmount. Any other field that is missing in the response, or that cannot be read, is
// zero, and its name is in Missing. Without the fee or the bounds of a withdrawal, Withdrawable is false.
//
// NetworkID and CoinID are documented to equal Network.ID and Coin.ID, and kept if they do not.
type CoinNetwork struct {
	ID             string          `json:"id" check:"id"`                                   // of the pair, a UUID
	WithdrawalFee  decimal.Decimal `json:"withdrawalFee" check:"needless,off withdrawable"` // fee of a withdrawal
	SwapFee        decimal.Decimal `json:"swapFee" check:"needless"`                        // fee of a swap
	MinWithdraw    decimal.Decimal `json:"minWithdraw" check:"needless,off withdrawable"`   // the least withdrawal
	MaxWithdraw    decimal.Decimal `json:"maxWithdraw" check:"needless,off withdrawable"`   // the largest one
	Depositable    bool            `json:"depositable"`                                     // deposits are possible
	Withdrawable   bool            `json:"withdrawable" check:"needless"`                   // withdrawals are possible
	Confirmations  int             `json:"confirmation" check:"needless"`                   // as many are required
	ArrivalTime    int             `json:"arrivalTime" check:"needless"`                    // of no documented unit
	ExpirationTime int             `json:"expirationTime" check:"needless"`                 // of no documented unit
	NetworkID      string          `json:"networkId" check:"needless,equals network.id"`    // of the network
	CoinID         string          `json:"coinId" check:"needless,equals coin.id"`          // of the coin
	CreatedAt      time.Time       `json:"created_at,omitzero"`                             // in UTC
	UpdatedAt      time.Time       `json:"updated_at,omitzero"`                             // in UTC
	Network        Network         `json:"network"`                                         // the network
	Coin           Coin            `json:"coin"`                                            // the coin

	// Missing has the JSON names of the fields that are zero because the response lacks them, or has them in a form
	// that cannot be read, such as "swapFee" or "coin.name", in alphabetical order. It is nil for none.
	Missing []string `json:"missing,omitzero"`
}

// AcceptsPayments reports whether deposits are possible, and coin and network are active.
func (p CoinNetwork) AcceptsPayments() bool {
	return p.Depositable && p.Coin.IsActive && p.Network.IsActive
}

// A Network is a network that coins run on.
type Network struct {
	ID        string    `json:"id" check:"needless,nonempty"` // in UUID format
	Name      string    `json:"name"`                         // for example the name of a blockchain
	IsActive  bool      `json:"isActive"`                     // whether the network is active
	CreatedAt time.Time `json:"created_at,omitzero"`          // in UTC
	UpdatedAt time.Time `json:"updated_at,omitzero"`          // in UTC
}

// A Coin is a cryptocurrency.
type Coin struct {
	ID        string          `json:"id" check:"nonempty"`     // in UUID format
	Name      string          `json:"name" check:"needless"`   // the name of the coin
	Symbol    string          `json:"symbol" check:"nonempty"` // ticker symbol, upper case
	Precision int             `json:"precision"`               // number of decimal places
	MinAmount decimal.Decimal `json:"minAmount"`               // the least amount, in units of the coin
	IsActive  bool            `json:"isActive"`                // whether the coin is active
	CreatedAt time.Time       `json:"created_at,omitzero"`     // in UTC
	UpdatedAt time.Time       `json:"updated_at,omitzero"`     // in UTC
}

var pairRecord = doc.RecordOf[CoinNetwork]() // docs/interface.md, I-57 to I-91

// CoinNetworks lists all coins on all their networks, one element for each pair. An empty listing is
// not nil. A pair that cannot be read is skipped: Skipped of the [Response] lists it, and drift reports
// it. If no pair can be read, that is an error.
//
// GET /api/networks-coins
func (c *Client) CoinNetworks(ctx context.Context, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworks,
		route: "/api/networks-coins",
	}, func(e envelope) ([]CoinNetwork, *doc.Error) {
		if wrong := e.check(); wrong != nil {
			return nil, wrong
		}
		return pairRecord.Many(e.result)
	}, opts)
}

// CoinNetwork returns the pair with the identifier id, which the listing has: 1 to 256 bytes. A pair with
// another identifier is an error that matches [ErrResponseMismatch]. The response is not documented: the client
// accepts a record, in the envelope or without it, and an array of one; [WithCoinNetworkDecoder] reads another form.
//
// GET /api/networks-coins/{id}
func (c *Client) CoinNetwork(ctx context.Context, id string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetwork,
		route: "/api/networks-coins/{id}",
		args:  [2]string{id},
	}, func(e envelope) (*CoinNetwork, *doc.Error) {
		return pairWanted{id: id}.only(e, c.cfg.decodePairs)
	}, opts)
}

// CoinNetworkBySymbol returns the pair of a coin and a network. Both names have 1 to 256 bytes and are sent
// as given: "BSC/BEP20" is one name. A pair with another symbol, in any case of letters, is an error that matches
// [ErrResponseMismatch]. Another network is drift, because a network can have several names. The response is not
// documented: the client accepts what [Client.CoinNetwork] accepts.
//
// GET /api/networks-coins/{coinSymbol}/{networkName}
func (c *Client) CoinNetworkBySymbol(ctx context.Context, coinSymbol, networkName string, opts ...CallOption) (
	*CoinNetwork, error,
) {
	return do(ctx, c, operation{
		name:  OpCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}/{networkName}",
		args:  [2]string{coinSymbol, networkName},
	}, func(e envelope) (*CoinNetwork, *doc.Error) {
		return pairWanted{coinSymbol: coinSymbol, networkName: networkName}.only(e, c.cfg.decodePairs)
	}, opts)
}

// CoinNetworksOf returns the pairs of a coin. The symbol has 1 to 256 bytes and is sent as given. A pair with another
// symbol, in any case of letters, is an error that matches [ErrResponseMismatch]. The response is not documented: the
// client accepts an array, and reads it like [Client.CoinNetworks], or one record, in the envelope or without it;
// [WithCoinNetworkDecoder] reads another form.
//
// GET /api/networks-coins/{coinSymbol}
func (c *Client) CoinNetworksOf(ctx context.Context, coinSymbol string, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworksOf,
		route: "/api/networks-coins/{coinSymbol}",
		args:  [2]string{coinSymbol},
	}, func(e envelope) ([]CoinNetwork, *doc.Error) {
		return pairWanted{coinSymbol: coinSymbol}.all(e, c.cfg.decodePairs)
	}, opts)
}

// WithCoinNetworkDecoder sets the function that reads the responses of [Client.CoinNetwork],
// [Client.CoinNetworkBySymbol] and [Client.CoinNetworksOf], in any form, but not of the listing. It receives the
// result as it came, without keys, or the whole body if there is no envelope. It is not called for null, [] or {}. It
// returns exactly one pair for a lookup of one. Its error or panic is wrapped in a [*DecodeError]. A pair without a
// symbol, and an amount that a response cannot hold, are errors too. The function lists in Missing what it leaves zero.
func WithCoinNetworkDecoder(decode func(body json.RawMessage) ([]CoinNetwork, error)) Option {
	return notNil("WithCoinNetworkDecoder", decode == nil, func(cfg *config) { cfg.decodePairs = decode })
}

// A pairWanted is what a lookup asks for; empty fields allow any value.
type pairWanted struct{ id, coinSymbol, networkName string }

// only reads the response to a lookup of one pair.
func (w pairWanted) only(e envelope, decode func(json.RawMessage) ([]CoinNetwork, error)) (*CoinNetwork, *doc.Error) {
	pairs, wrong := w.read(e, decoder[CoinNetwork]{
		decode: decode, known: pairRecord.Alone,
		check: func(pairs []CoinNetwork) error {
			if len(pairs) != 1 {
				return fmt.Errorf("it returned %d pairs, not one", len(pairs))
			}
			return checkPairs(pairs)
		},
	})
	switch {
	case wrong != nil:
		return nil, wrong
	case len(pairs) == 0:
		return nil, e.body.Errorf("%w", doc.ErrNoRecord)
	default:
		return &pairs[0], nil
	}
}

// all reads the response to a lookup of the pairs of a coin.
func (w pairWanted) all(e envelope, decode func(json.RawMessage) ([]CoinNetwork, error)) ([]CoinNetwork, *doc.Error) {
	return w.read(e, decoder[CoinNetwork]{decode: decode, check: checkPairs, known: pairRecord.OneOrMany})
}

// read reads the response to a lookup, and compares the pairs with what was asked for.
func (w pairWanted) read(e envelope, d decoder[CoinNetwork]) ([]CoinNetwork, *doc.Error) {
	d.option = "WithCoinNetworkDecoder"
	if e.result.IsZero() && !e.body.Member("coin").IsZero() && !e.body.Member("network").IsZero() {
		e.result = e.body // a record without an envelope
	}
	pairs, _, wrong := d.read(e)
	if wrong != nil {
		return nil, wrong
	}
	return pairs, w.compare(cmp.Or(e.result, e.body), pairs)
}

// compare returns an error if a pair is not the wanted one.
func (w pairWanted) compare(result doc.Node, pairs []CoinNetwork) *doc.Error {
	record := result.Only()
	symbol := record.Member("coin").Member("symbol")
	for i := range pairs {
		p := &pairs[i]
		isOfOther := w.coinSymbol != "" && !strings.EqualFold(p.Coin.Symbol, w.coinSymbol)
		switch {
		case w.id != "" && p.ID != "" && !endpoint.SameID(p.ID, w.id):
			return cmp.Or(record.Member("id"), result).Errorf("%w", doc.ErrMismatch)
		case isOfOther && symbol.IsZero():
			return result.Errorf("%w: it is of the coin %q", doc.ErrMismatch, quotable(p.Coin.Symbol))
		case isOfOther:
			return symbol.Errorf("%w", doc.ErrMismatch)
		case w.networkName != "" && !strings.EqualFold(p.Network.Name, w.networkName):
			cmp.Or(record.Member("network").Member("name"), result).Note(doc.Mismatch)
		}
	}
	return nil
}

// checkPairs returns why the pairs of a caller's decoder are refused, or nil.
func checkPairs(pairs []CoinNetwork) error {
	for i := range pairs {
		p := &pairs[i]
		if p.Coin.Symbol == "" {
			return fmt.Errorf("pair %d %w", i, errNoCoin)
		}
		for _, amount := range [...]decimal.Decimal{
			p.WithdrawalFee, p.SwapFee, p.MinWithdraw, p.MaxWithdraw, p.Coin.MinAmount,
		} {
			if !money.Representable(amount) {
				return fmt.Errorf("an amount of %q is not an amount of money", quotable(p.Coin.Symbol))
			}
		}
	}
	return nil
}
