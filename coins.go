package gateway

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
)

// A CoinNetwork is a coin on a network. Amounts are assumed to be in units of the coin. Compare decimals
// with Equal: == does not compare them by value.
//
// A payment does not need the fields of withdrawals and swaps, the times, and the name of the coin. If one is
// null, or is missing in some records of a list, it is zero, and drift reports it. Without the fee or the bounds of a
// withdrawal, Withdrawable is false.
type CoinNetwork struct {
	ID             string          `json:"id" check:"id"`                                   // of the pair, in UUID format
	WithdrawalFee  decimal.Decimal `json:"withdrawalFee" check:"nullable off withdrawable"` // fee of a withdrawal
	SwapFee        decimal.Decimal `json:"swapFee" check:"nullable"`                        // fee of a swap
	MinWithdraw    decimal.Decimal `json:"minWithdraw" check:"nullable off withdrawable"`   // the least that can be withdrawn
	MaxWithdraw    decimal.Decimal `json:"maxWithdraw" check:"nullable off withdrawable"`   // the most that can be withdrawn
	Depositable    bool            `json:"depositable"`                                     // whether deposits are possible
	Withdrawable   bool            `json:"withdrawable" check:"nullable"`                   // whether withdrawals are possible; false if the response lacks the fee or the bounds
	Confirmations  int             `json:"confirmation" check:"nullable"`                   // how many confirmations are required
	ArrivalTime    int             `json:"arrivalTime" check:"nullable"`                    // of no documented unit
	ExpirationTime int             `json:"expirationTime" check:"nullable"`                 // of no documented unit
	NetworkID      string          `json:"networkId" check:"equals network.id"`             // documented to equal Network.ID, and kept if it does not
	CoinID         string          `json:"coinId" check:"equals coin.id"`                   // documented to equal Coin.ID, and kept if it does not
	CreatedAt      time.Time       `json:"created_at,omitzero"`                             // in UTC; zero when missing or unreadable
	UpdatedAt      time.Time       `json:"updated_at,omitzero"`                             // in UTC; zero when missing or unreadable
	Network        Network         `json:"network"`                                         // the network
	Coin           Coin            `json:"coin"`                                            // the coin
}

// A Network is a network that coins run on.
type Network struct {
	ID        string    `json:"id" check:"nonempty"` // in UUID format
	Name      string    `json:"name"`                // for example the name of a blockchain
	IsActive  bool      `json:"isActive"`            // whether the network is active
	CreatedAt time.Time `json:"created_at,omitzero"` // in UTC; zero when missing or unreadable
	UpdatedAt time.Time `json:"updated_at,omitzero"` // in UTC; zero when missing or unreadable
}

// A Coin is a cryptocurrency.
type Coin struct {
	ID        string          `json:"id" check:"nonempty"`     // in UUID format
	Name      string          `json:"name" check:"nullable"`   // the name of the coin
	Symbol    string          `json:"symbol" check:"nonempty"` // ticker symbol, upper case
	Precision int             `json:"precision"`               // number of decimal places
	MinAmount decimal.Decimal `json:"minAmount"`               // the least amount, in units of the coin
	IsActive  bool            `json:"isActive"`                // whether the coin is active
	CreatedAt time.Time       `json:"created_at,omitzero"`     // in UTC; zero when missing or unreadable
	UpdatedAt time.Time       `json:"updated_at,omitzero"`     // in UTC; zero when missing or unreadable
}

var pairRecord = doc.RecordOf[CoinNetwork]() // docs/interface.md, I-57 to I-91

// readPairs reads an array of pairs.
func readPairs(e envelope) ([]CoinNetwork, *doc.Error) {
	if wrong := e.check(); wrong != nil {
		return nil, wrong
	}
	return pairRecord.Many(e.result)
}

// readPairsOfCoin reads an array of pairs, or one pair.
func readPairsOfCoin(e envelope) ([]CoinNetwork, *doc.Error) {
	if wrong := e.check(); wrong != nil {
		return nil, wrong
	}
	return pairRecord.OneOrMany(e.result)
}

// CoinNetworks lists all coins on all their networks, one element for each pair. An empty listing is
// not nil. A pair that cannot be read is skipped: Skipped of the [Response] lists it, and drift reports
// it. If no pair can be read, that is an error.
//
// GET /api/networks-coins
func (c *Client) CoinNetworks(ctx context.Context, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworks,
		route: "/api/networks-coins",
	}, readPairs, opts)
}

// CoinNetwork returns the pair with the identifier id, which the listing has: 1 to 256 bytes. A record with
// another identifier is an error that matches [ErrResponseMismatch]. The response is not documented: the client
// accepts a record, or an array of one.
//
// GET /api/networks-coins/{id}
func (c *Client) CoinNetwork(ctx context.Context, id string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, operation{
		name:     OpCoinNetwork,
		route:    "/api/networks-coins/{id}",
		args:     [2]string{id},
		expectID: id,
	}, func(e envelope) (*CoinNetwork, *doc.Error) { return one(e, pairRecord, id) }, opts) // I-50
}

// CoinNetworkBySymbol returns the pair of a coin and a network. Both names have 1 to 256 bytes and are sent
// as given: "BSC/BEP20" is one name. The response is not documented: the client accepts a record, or an array
// of one. Verify its symbol and network.
//
// GET /api/networks-coins/{coinSymbol}/{networkName}
func (c *Client) CoinNetworkBySymbol(ctx context.Context, coinSymbol, networkName string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}/{networkName}",
		args:  [2]string{coinSymbol, networkName},
	}, func(e envelope) (*CoinNetwork, *doc.Error) { return one(e, pairRecord, "") }, opts) // I-50
}

// CoinNetworksOf returns the pairs of a coin. The symbol has 1 to 256 bytes and is sent as given. The response is
// not documented: the client accepts an array, and reads it like [Client.CoinNetworks], or one record.
//
// GET /api/networks-coins/{coinSymbol}
func (c *Client) CoinNetworksOf(ctx context.Context, coinSymbol string, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworksOf,
		route: "/api/networks-coins/{coinSymbol}",
		args:  [2]string{coinSymbol},
	}, readPairsOfCoin, opts) // I-16, I-51
}
