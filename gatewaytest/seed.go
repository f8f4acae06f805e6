package gatewaytest

import "crypto/sha256"

// The timestamps of the catalog, in the form the service uses.
const (
	seedCreated = "2023-05-14T09:21:43.000Z"
	seedUpdated = "2024-11-02T16:40:05.000Z"
)

// seedCatalog builds the initial records of a server from the two tables below.
func seedCatalog() []CoinNetwork {
	coins := map[string]Coin{}
	for _, c := range seedCoins() {
		c.ID, c.CreatedAt, c.UpdatedAt = seedID("coin "+c.Symbol), seedCreated, seedUpdated
		coins[c.Symbol] = c
	}
	catalog := []CoinNetwork{}
	for _, p := range seedPairs() {
		network := Network{
			ID: seedID("network " + p.network), Name: p.network, IsActive: true,
			CreatedAt: seedCreated, UpdatedAt: seedUpdated,
		}
		coin := coins[p.symbol]
		catalog = append(catalog, CoinNetwork{
			ID:             seedID("pair " + p.symbol + " " + p.network),
			WithdrawalFee:  p.fee,
			SwapFee:        p.swap,
			MinWithdraw:    p.min,
			MaxWithdraw:    p.max,
			Depositable:    p.closed != "deposits",
			Withdrawable:   p.closed != "withdrawals",
			Confirmations:  p.confirmations,
			ArrivalTime:    p.arrival,
			ExpirationTime: p.expiration,
			NetworkID:      network.ID,
			CoinID:         coin.ID,
			CreatedAt:      seedCreated,
			UpdatedAt:      seedUpdated,
			Network:        network,
			Coin:           coin,
		})
	}
	return catalog
}

// seedID derives an identifier in UUID format from a name.
func seedID(name string) string {
	sum := sha256.Sum256([]byte("gatewaytest " + name))
	return formatID([16]byte(sum[:16]))
}

// seedCoins are the coins of the catalog; one of them is inactive.
func seedCoins() []Coin {
	return []Coin{
		{Name: "Bitcoin", Symbol: "BTC", Precision: 8, MinAmount: "0.00001000", IsActive: true},
		{Name: "Ethereum", Symbol: "ETH", Precision: 18, MinAmount: "0.00010000", IsActive: true},
		{Name: "Tether", Symbol: "USDT", Precision: 6, MinAmount: "1.00000000", IsActive: true},
		{Name: "USD Coin", Symbol: "USDC", Precision: 6, MinAmount: "1.00000000", IsActive: true},
		{Name: "Dai", Symbol: "DAI", Precision: 18, MinAmount: "1.00000000", IsActive: true},
		{Name: "BNB", Symbol: "BNB", Precision: 18, MinAmount: "0.00200000", IsActive: true},
		{Name: "Solana", Symbol: "SOL", Precision: 9, MinAmount: "0.01000000", IsActive: true},
		{Name: "Polygon", Symbol: "POL", Precision: 18, MinAmount: "2.00000000", IsActive: true},
		{Name: "TRON", Symbol: "TRX", Precision: 6, MinAmount: "5.00000000", IsActive: true},
		{Name: "Litecoin", Symbol: "LTC", Precision: 8, MinAmount: "0.00500000", IsActive: true},
		{Name: "Dogecoin", Symbol: "DOGE", Precision: 8, MinAmount: "5.00000000", IsActive: true},
		{Name: "XRP", Symbol: "XRP", Precision: 6, MinAmount: "1.00000000", IsActive: true},
		{Name: "Cardano", Symbol: "ADA", Precision: 6, MinAmount: "1.00000000", IsActive: true},
		{Name: "Avalanche", Symbol: "AVAX", Precision: 18, MinAmount: "0.02000000", IsActive: true},
		{Name: "Monero", Symbol: "XMR", Precision: 12, MinAmount: "0.00500000", IsActive: false},
	}
}

// A seedPair is one row of the catalog. closed is "deposits", "withdrawals" or "".
type seedPair struct {
	symbol, network                    string
	fee, swap, min, max                string
	confirmations, arrival, expiration int
	closed                             string
}

// seedPairs are the pairs of the catalog, in the order in which they are listed.
func seedPairs() []seedPair {
	const bsc = "BNB Smart Chain (BEP20)"
	return []seedPair{
		{"BTC", "Bitcoin", "0.0002", "0.0005", "0.001", "5", 2, 30, 60, ""},
		{"BTC", bsc, "0.00001", "0.0005", "0.0005", "5", 15, 5, 60, ""},
		{"ETH", "Ethereum", "0.0016", "0.002", "0.01", "100", 12, 5, 60, ""},
		{"ETH", "Arbitrum One", "0.0001", "0.002", "0.002", "100", 20, 3, 60, ""},
		{"ETH", bsc, "0.00022", "0.002", "0.002", "100", 15, 5, 60, ""},
		{"USDT", "Tron", "1", "0.5", "10", "100000", 20, 3, 60, ""},
		{"USDT", "Ethereum", "4.5", "0.5", "20", "100000", 12, 5, 60, ""},
		{"USDT", bsc, "0.29", "0.5", "10", "100000", 15, 5, 60, ""},
		{"USDT", "Polygon", "0.1", "0.5", "5", "50000", 128, 5, 60, ""},
		{"USDT", "Solana", "0.8", "0.5", "5", "50000", 32, 2, 60, ""},
		{"USDC", "Ethereum", "4.5", "0.5", "20", "100000", 12, 5, 60, ""},
		{"USDC", "Polygon", "0.1", "0.5", "5", "50000", 128, 5, 60, ""},
		{"USDC", "Solana", "0.8", "0.5", "5", "50000", 32, 2, 60, ""},
		{"DAI", "Ethereum", "4.2", "0.5", "20", "50000", 12, 5, 60, ""},
		{"DAI", "Polygon", "0.15", "0.5", "5", "50000", 128, 5, 60, ""},
		{"BNB", bsc, "0.0005", "0.001", "0.01", "500", 15, 5, 60, ""},
		{"SOL", "Solana", "0.008", "0.01", "0.1", "5000", 32, 2, 60, ""},
		{"POL", "Polygon", "0.1", "0.2", "5", "200000", 128, 5, 60, ""},
		{"TRX", "Tron", "1", "2", "10", "1000000", 20, 3, 60, ""},
		{"LTC", "Litecoin", "0.001", "0.002", "0.01", "1000", 6, 20, 90, ""},
		{"DOGE", "Dogecoin", "4", "5", "20", "500000", 20, 25, 90, "withdrawals"},
		{"XRP", "XRP Ledger", "0.2", "0.5", "10", "250000", 1, 1, 30, ""},
		{"ADA", "Cardano", "0.8", "1", "5", "250000", 15, 10, 60, "deposits"},
		{"AVAX", "Avalanche C-Chain", "0.01", "0.02", "0.1", "10000", 12, 2, 60, ""},
		{"XMR", "Monero", "0.0001", "0.001", "0.01", "500", 10, 25, 90, ""},
	}
}
