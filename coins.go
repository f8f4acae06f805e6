package gateway

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A CoinNetwork is a coin on a network: docs/interface.md, I-57 to I-73. Amounts are
// taken to be in units of the coin (I-74).
type CoinNetwork struct {
	ID             string          // of the pair, in UUID format
	WithdrawalFee  decimal.Decimal // fee of a withdrawal
	SwapFee        decimal.Decimal // fee of a swap
	MinWithdraw    decimal.Decimal // the least that can be withdrawn
	MaxWithdraw    decimal.Decimal // the most that can be withdrawn
	Depositable    bool            // whether deposits are possible
	Withdrawable   bool            // whether withdrawals are possible
	Confirmations  int             // how many confirmations are required
	ArrivalTime    int             // of no documented unit: docs/interface.md, I-67
	ExpirationTime int             // of no documented unit: docs/interface.md, I-67
	NetworkID      string          // documented to equal Network.ID, and kept if it does not (I-56)
	CoinID         string          // documented to equal Coin.ID, and kept if it does not (I-56)
	CreatedAt      time.Time       // in UTC; zero when missing or unreadable
	UpdatedAt      time.Time       // in UTC; zero when missing or unreadable
	Network        Network         // the network
	Coin           Coin            // the coin
}

var coinNetworkFields = strictjson.Fields[CoinNetwork]{
	strictjson.Required("id", (*strictjson.Decoder).ID, func(p *CoinNetwork) *string { return &p.ID }),
	strictjson.Required("withdrawalFee", (*strictjson.Decoder).Amount, func(p *CoinNetwork) *decimal.Decimal { return &p.WithdrawalFee }),
	strictjson.Required("swapFee", (*strictjson.Decoder).Amount, func(p *CoinNetwork) *decimal.Decimal { return &p.SwapFee }),
	strictjson.Required("minWithdraw", (*strictjson.Decoder).Amount, func(p *CoinNetwork) *decimal.Decimal { return &p.MinWithdraw }),
	strictjson.Required("maxWithdraw", (*strictjson.Decoder).Amount, func(p *CoinNetwork) *decimal.Decimal { return &p.MaxWithdraw }),
	strictjson.Required("depositable", (*strictjson.Decoder).Bool, func(p *CoinNetwork) *bool { return &p.Depositable }),
	strictjson.Required("withdrawable", (*strictjson.Decoder).Bool, func(p *CoinNetwork) *bool { return &p.Withdrawable }),
	strictjson.Required("confirmation", (*strictjson.Decoder).Int, func(p *CoinNetwork) *int { return &p.Confirmations }),
	strictjson.Required("arrivalTime", (*strictjson.Decoder).Int, func(p *CoinNetwork) *int { return &p.ArrivalTime }),
	strictjson.Required("expirationTime", (*strictjson.Decoder).Int, func(p *CoinNetwork) *int { return &p.ExpirationTime }),
	strictjson.Matching(strictjson.Required("networkId", (*strictjson.Decoder).Repeated, func(p *CoinNetwork) *string { return &p.NetworkID }), networkIDs),
	strictjson.Matching(strictjson.Required("coinId", (*strictjson.Decoder).Repeated, func(p *CoinNetwork) *string { return &p.CoinID }), coinIDs),
	strictjson.Timestamp("created_at", func(p *CoinNetwork) *time.Time { return &p.CreatedAt }),
	strictjson.Timestamp("updated_at", func(p *CoinNetwork) *time.Time { return &p.UpdatedAt }),
	strictjson.Matching(strictjson.Nested("network", networkFields, func(p *CoinNetwork) *Network { return &p.Network }), networkIDs),
	strictjson.Matching(strictjson.Nested("coin", coinFields, func(p *CoinNetwork) *Coin { return &p.Coin }), coinIDs),
}

func networkIDs(p *CoinNetwork) (string, string) { return p.NetworkID, p.Network.ID }
func coinIDs(p *CoinNetwork) (string, string)    { return p.CoinID, p.Coin.ID }

// A Network is a network that coins run on: docs/interface.md, I-79 to I-83.
type Network struct {
	ID        string    // in UUID format
	Name      string    // for example the name of a blockchain
	IsActive  bool      // whether the network is active
	CreatedAt time.Time // in UTC; zero when missing or unreadable
	UpdatedAt time.Time // in UTC; zero when missing or unreadable
}

var networkFields = strictjson.Fields[Network]{
	strictjson.Required("id", (*strictjson.Decoder).NonEmpty, func(n *Network) *string { return &n.ID }),
	strictjson.Required("name", (*strictjson.Decoder).Text, func(n *Network) *string { return &n.Name }),
	strictjson.Required("isActive", (*strictjson.Decoder).Bool, func(n *Network) *bool { return &n.IsActive }),
	strictjson.Timestamp("created_at", func(n *Network) *time.Time { return &n.CreatedAt }),
	strictjson.Timestamp("updated_at", func(n *Network) *time.Time { return &n.UpdatedAt }),
}

// A Coin is a cryptocurrency: docs/interface.md, I-84 to I-91.
type Coin struct {
	ID        string          // in UUID format
	Name      string          // the name of the coin
	Symbol    string          // ticker symbol, upper case
	Precision int             // number of decimal places
	MinAmount decimal.Decimal // the least amount, in units of the coin
	IsActive  bool            // whether the coin is active
	CreatedAt time.Time       // in UTC; zero when missing or unreadable
	UpdatedAt time.Time       // in UTC; zero when missing or unreadable
}

var coinFields = strictjson.Fields[Coin]{
	strictjson.Required("id", (*strictjson.Decoder).NonEmpty, func(c *Coin) *string { return &c.ID }),
	strictjson.Required("name", (*strictjson.Decoder).Text, func(c *Coin) *string { return &c.Name }),
	strictjson.Required("symbol", (*strictjson.Decoder).NonEmpty, func(c *Coin) *string { return &c.Symbol }),
	strictjson.Required("precision", (*strictjson.Decoder).Int, func(c *Coin) *int { return &c.Precision }),
	strictjson.Required("minAmount", (*strictjson.Decoder).Amount, func(c *Coin) *decimal.Decimal { return &c.MinAmount }),
	strictjson.Required("isActive", (*strictjson.Decoder).Bool, func(c *Coin) *bool { return &c.IsActive }),
	strictjson.Timestamp("created_at", func(c *Coin) *time.Time { return &c.CreatedAt }),
	strictjson.Timestamp("updated_at", func(c *Coin) *time.Time { return &c.UpdatedAt }),
}

var (
	readPairs       = strictjson.Many(coinNetworkFields)
	readPair        = strictjson.One(coinNetworkFields)
	readPairOrPairs = strictjson.OneOrMany(coinNetworkFields)
)

// CoinNetworks lists all coins on all their networks, one element per pair. An empty
// listing is not nil.
//
// GET /api/networks-coins
func (c *Client) CoinNetworks(ctx context.Context, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworks,
		route: "/api/networks-coins",
	}, readPairs, opts)
}

// CoinNetwork returns the pair with an identifier from the listing: 1 to 256 bytes
// without any of / \ % ? #. A record with another identifier is an error that matches
// [ErrResponseMismatch]. The response is not documented (docs/interface.md, I-50): a
// record is accepted, or an array of one.
//
// GET /api/networks-coins/{id}
func (c *Client) CoinNetwork(ctx context.Context, id string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, operation{
		name:     OpCoinNetwork,
		route:    "/api/networks-coins/{id}",
		args:     [2]string{id},
		expectID: id,
	}, readPair, opts)
}

// CoinNetworkBySymbol returns the pair of a coin and a network. Both names are sent
// as given: 1 to 256 bytes without any of / \ % ? #. The response is not documented
// (docs/interface.md, I-50): a record is accepted, or an array of one; the caller must
// verify its symbol and network.
//
// GET /api/networks-coins/{coinSymbol}/{networkName}
func (c *Client) CoinNetworkBySymbol(ctx context.Context, coinSymbol, networkName string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}/{networkName}",
		args:  [2]string{coinSymbol, networkName},
	}, readPair, opts)
}

// CoinNetworksOf returns the pairs of a coin, whose symbol is sent as given: 1 to 256
// bytes without any of / \ % ? #. The name of the network is documented as not required,
// and the response is not documented (docs/interface.md, I-16 and I-51): an array is
// accepted, or one record, which is returned as an array of one.
//
// GET /api/networks-coins/{coinSymbol}
func (c *Client) CoinNetworksOf(ctx context.Context, coinSymbol string, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, operation{
		name:  OpCoinNetworksOf,
		route: "/api/networks-coins/{coinSymbol}",
		args:  [2]string{coinSymbol},
	}, readPairOrPairs, opts)
}
