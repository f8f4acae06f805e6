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
	idField("id", func(p *CoinNetwork) *string { return &p.ID }),
	amountField("withdrawalFee", func(p *CoinNetwork) *decimal.Decimal { return &p.WithdrawalFee }),
	amountField("swapFee", func(p *CoinNetwork) *decimal.Decimal { return &p.SwapFee }),
	amountField("minWithdraw", func(p *CoinNetwork) *decimal.Decimal { return &p.MinWithdraw }),
	amountField("maxWithdraw", func(p *CoinNetwork) *decimal.Decimal { return &p.MaxWithdraw }),
	flagField("depositable", func(p *CoinNetwork) *bool { return &p.Depositable }),
	flagField("withdrawable", func(p *CoinNetwork) *bool { return &p.Withdrawable }),
	integerField("confirmation", func(p *CoinNetwork) *int { return &p.Confirmations }),
	integerField("arrivalTime", func(p *CoinNetwork) *int { return &p.ArrivalTime }),
	integerField("expirationTime", func(p *CoinNetwork) *int { return &p.ExpirationTime }),
	nonEmptyField("networkId", func(p *CoinNetwork) *string { return &p.NetworkID }),
	nonEmptyField("coinId", func(p *CoinNetwork) *string { return &p.CoinID }),
	timeField("created_at", func(p *CoinNetwork) *time.Time { return &p.CreatedAt }),
	timeField("updated_at", func(p *CoinNetwork) *time.Time { return &p.UpdatedAt }),
	recordField("network", networkFields, func(p *CoinNetwork) *Network { return &p.Network }),
	recordField("coin", coinFields, func(p *CoinNetwork) *Coin { return &p.Coin }),
}

// A Network is a network that coins run on: INTERFACE.md, "Network record".
type Network struct {
	ID        string // in UUID format
	Name      string // for example the name of a blockchain
	IsActive  bool
	CreatedAt time.Time // in UTC; zero when the service gave none that can be read
	UpdatedAt time.Time // in UTC; zero when the service gave none that can be read
}

var networkFields = fields[Network]{
	nonEmptyField("id", func(n *Network) *string { return &n.ID }),
	textField("name", func(n *Network) *string { return &n.Name }),
	flagField("isActive", func(n *Network) *bool { return &n.IsActive }),
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
	nonEmptyField("id", func(c *Coin) *string { return &c.ID }),
	textField("name", func(c *Coin) *string { return &c.Name }),
	nonEmptyField("symbol", func(c *Coin) *string { return &c.Symbol }),
	integerField("precision", func(c *Coin) *int { return &c.Precision }),
	amountField("minAmount", func(c *Coin) *decimal.Decimal { return &c.MinAmount }),
	flagField("isActive", func(c *Coin) *bool { return &c.IsActive }),
	timeField("created_at", func(c *Coin) *time.Time { return &c.CreatedAt }),
	timeField("updated_at", func(c *Coin) *time.Time { return &c.UpdatedAt }),
}

// CoinNetworks lists all coins on all their networks, one element per pair. A
// listing of none is empty, not nil.
//
// GET /api/networks-coins
func (c *Client) CoinNetworks(ctx context.Context, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworks,
		route: "/api/networks-coins",
	}, many(coinNetworkFields), opts)
}

// CoinNetwork returns the pair of an identifier from the listing. A record
// with another identifier is an error that matches [ErrResponseMismatch]. The
// body is not shown by the interface: a record is read, or an array of one.
//
// GET /api/networks-coins/{id}
func (c *Client) CoinNetwork(ctx context.Context, id string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetwork,
		route: "/api/networks-coins/{id}",
		args:  []string{id},
		id:    id,
	}, one(coinNetworkFields), opts)
}

// CoinNetworkBySymbol returns the pair of a coin and a network. Both names are
// sent as given. The body is not shown by the interface: a record is read, or
// an array of one; whose symbol and network it has is for the caller to see.
//
// GET /api/networks-coins/{coinSymbol}/{networkName}
func (c *Client) CoinNetworkBySymbol(ctx context.Context, coinSymbol, networkName string, opts ...CallOption) (*CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}/{networkName}",
		args:  []string{coinSymbol, networkName},
	}, one(coinNetworkFields), opts)
}

// CoinNetworksBySymbol returns the pairs of a coin, whose symbol is sent as
// given. The interface marks the network's name as not required and does not
// show the body: an array is read, or one record as an array of one.
//
// GET /api/networks-coins/{coinSymbol}
func (c *Client) CoinNetworksBySymbol(ctx context.Context, coinSymbol string, opts ...CallOption) ([]CoinNetwork, error) {
	return do(ctx, c, call{
		op:    opCoinNetworkBySymbol,
		route: "/api/networks-coins/{coinSymbol}",
		args:  []string{coinSymbol},
	}, oneOrMany(coinNetworkFields), opts)
}
