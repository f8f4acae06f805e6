package gateway

import (
	"context"
	"time"

	"github.com/shopspring/decimal"
)

// A CoinNetwork is a coin on a network: INTERFACE.md, "Coin-network record".
// Amounts are in units of the coin.
type CoinNetwork struct {
	ID             string          // of the pair, in UUID format
	WithdrawalFee  decimal.Decimal // fee of a withdrawal
	SwapFee        decimal.Decimal // fee of a swap
	MinWithdraw    decimal.Decimal // the least that can be withdrawn
	MaxWithdraw    decimal.Decimal // the most that can be withdrawn
	Depositable    bool            // whether deposits are possible
	Withdrawable   bool            // whether withdrawals are possible
	Confirmations  int             // how many confirmations are required
	ArrivalTime    int             // the service states no unit
	ExpirationTime int             // the service states no unit
	NetworkID      string          // equals Network.ID
	CoinID         string          // equals Coin.ID
	CreatedAt      time.Time       // in UTC; zero when the service gave none that can be read
	UpdatedAt      time.Time       // in UTC; zero when the service gave none that can be read
	Network        Network
	Coin           Coin
}

var coinNetworkFields = fields[CoinNetwork]{
	required("id", (*decoder).identifier, func(p *CoinNetwork) *string { return &p.ID }),
	required("withdrawalFee", (*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.WithdrawalFee }),
	required("swapFee", (*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.SwapFee }),
	required("minWithdraw", (*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.MinWithdraw }),
	required("maxWithdraw", (*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.MaxWithdraw }),
	required("depositable", (*decoder).flag, func(p *CoinNetwork) *bool { return &p.Depositable }),
	required("withdrawable", (*decoder).flag, func(p *CoinNetwork) *bool { return &p.Withdrawable }),
	required("confirmation", (*decoder).integer, func(p *CoinNetwork) *int { return &p.Confirmations }),
	required("arrivalTime", (*decoder).integer, func(p *CoinNetwork) *int { return &p.ArrivalTime }),
	required("expirationTime", (*decoder).integer, func(p *CoinNetwork) *int { return &p.ExpirationTime }),
	matching(required("networkId", (*decoder).reference, func(p *CoinNetwork) *string { return &p.NetworkID }), networkIDs),
	matching(required("coinId", (*decoder).reference, func(p *CoinNetwork) *string { return &p.CoinID }), coinIDs),
	timeField("created_at", func(p *CoinNetwork) *time.Time { return &p.CreatedAt }),
	timeField("updated_at", func(p *CoinNetwork) *time.Time { return &p.UpdatedAt }),
	matching(recordField("network", networkFields, func(p *CoinNetwork) *Network { return &p.Network }, keptNetworks), networkIDs),
	matching(recordField("coin", coinFields, func(p *CoinNetwork) *Coin { return &p.Coin }, keptCoins), coinIDs),
}

func networkIDs(p *CoinNetwork) (string, string) { return p.NetworkID, p.Network.ID }
func coinIDs(p *CoinNetwork) (string, string)    { return p.CoinID, p.Coin.ID }

// A Network is a network that coins run on: INTERFACE.md, "Network record".
type Network struct {
	ID        string // in UUID format
	Name      string // for example the name of a blockchain
	IsActive  bool
	CreatedAt time.Time // in UTC; zero when the service gave none that can be read
	UpdatedAt time.Time // in UTC; zero when the service gave none that can be read
}

var networkFields = fields[Network]{
	required("id", (*decoder).nonEmpty, func(n *Network) *string { return &n.ID }),
	required("name", (*decoder).text, func(n *Network) *string { return &n.Name }),
	required("isActive", (*decoder).flag, func(n *Network) *bool { return &n.IsActive }),
	timeField("created_at", func(n *Network) *time.Time { return &n.CreatedAt }),
	timeField("updated_at", func(n *Network) *time.Time { return &n.UpdatedAt }),
}

// A Coin is a cryptocurrency: INTERFACE.md, "Coin record".
type Coin struct {
	ID        string // in UUID format
	Name      string
	Symbol    string          // ticker symbol, upper case
	Precision int             // number of decimal places
	MinAmount decimal.Decimal // the least amount, in units of the coin
	IsActive  bool
	CreatedAt time.Time // in UTC; zero when the service gave none that can be read
	UpdatedAt time.Time // in UTC; zero when the service gave none that can be read
}

var coinFields = fields[Coin]{
	required("id", (*decoder).nonEmpty, func(c *Coin) *string { return &c.ID }),
	required("name", (*decoder).text, func(c *Coin) *string { return &c.Name }),
	required("symbol", (*decoder).nonEmpty, func(c *Coin) *string { return &c.Symbol }),
	required("precision", (*decoder).integer, func(c *Coin) *int { return &c.Precision }),
	required("minAmount", (*decoder).amount, func(c *Coin) *decimal.Decimal { return &c.MinAmount }),
	required("isActive", (*decoder).flag, func(c *Coin) *bool { return &c.IsActive }),
	timeField("created_at", func(c *Coin) *time.Time { return &c.CreatedAt }),
	timeField("updated_at", func(c *Coin) *time.Time { return &c.UpdatedAt }),
}

var (
	readPairs       = many(coinNetworkFields)
	readPair        = one(coinNetworkFields)
	readPairOrPairs = oneOrMany(coinNetworkFields)
)

// CoinNetworks lists all coins on all their networks, one element per pair. A
// listing of none is empty, not nil.
//
// GET /api/networks-coins
func (c *Client) CoinNetworks(ctx context.Context, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworks,
		route: "/api/networks-coins",
	}, readPairs, opts)
}

// CoinNetwork returns the pair of an identifier from the listing: 1 to 256
// bytes without any of / \ % ? #. A record with another identifier is an error
// that matches [ErrResponseMismatch]. The body is not shown by the interface: a
// record is read, or an array of one.
//
// GET /api/networks-coins/{id}
func (c *Client) CoinNetwork(ctx context.Context, id string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetwork,
		route: "/api/networks-coins/{id}",
		args:  [2]string{id},
		id:    id,
	}, readPair, opts)
}

// CoinNetworkBySymbol returns the pair of a coin and a network. Both names are
// sent as given: 1 to 256 bytes without any of / \ % ? #. The body is not shown
// by the interface: a record is read, or an array of one; whose symbol and
// network it has is for the caller to see.
//
// GET /api/networks-coins/{coinSymbol}/{networkName}
func (c *Client) CoinNetworkBySymbol(ctx context.Context, coinSymbol, networkName string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}/{networkName}",
		args:  [2]string{coinSymbol, networkName},
	}, readPair, opts)
}

// CoinNetworksBySymbol returns the pairs of a coin, whose symbol is sent as
// given: 1 to 256 bytes without any of / \ % ? #. The interface marks the
// network's name as not required and does not show the body: an array is read,
// or one record as an array of one.
//
// GET /api/networks-coins/{coinSymbol}
func (c *Client) CoinNetworksBySymbol(ctx context.Context, coinSymbol string, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}",
		args:  [2]string{coinSymbol},
	}, readPairOrPairs, opts)
}
