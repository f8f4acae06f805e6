package main

const (
	wire  = "TestClient_Wire/"
	paths = "TestClient_pathTexts/"
	asks  = "TestServer_answers/"
)

// get says that what the test of a name sends is a GET.
func get(name string) claim {
	return inClient("exchange.newAttemptRequest", `http.MethodGet`, `http.MethodDelete`, wire+name)
}

// serves says that the stand-in answers a GET.
func serves(test string) claim {
	return inStandIn("Server.carryOut", `http.MethodGet`, `http.MethodDelete`, test)
}

// The endpoints of INTERFACE.md that are the same for everybody.
func lookups() []section {
	return []section{
		{"Endpoint 1. List coins and networks", listing()},
		{"Endpoint 2. Get a coin-network record by identifier", byIdentifier()},
		{"Endpoint 3. Get a coin-network record by symbol and network name", bySymbol()},
		{"Endpoint 4. Exchange rate", exchangeRate()},
	}
}

func listing() []statement {
	return []statement{
		said(
			"Method and path: GET {base_url}/api/networks-coins.",
			inClient("Client.CoinNetworks", `"/api/networks-coins"`, `"/api/coins"`, wire+"CoinNetworks"), get("CoinNetworks"),
			inStandIn("match", `{"networks-coins", `, `{"coins", `, asks+"listing"), serves(asks+"listing"),
		),
		said(
			"Parameters: none.",
			inClient("Client.CoinNetworks", `"/api/networks-coins",`, `"/api/networks-coins", query: []param{{"page", "1"}},`, wire+"CoinNetworks"),
		),
		said(
			"Response: envelope whose result is an array of coin-network records.",
			inClient("readPairs", `many(`, `oneOrMany(`, "TestDecode_listing/row 61: an object where an array is expected"),
			inStandIn("Server.carryOut", `s.catalogue)`, `s.catalogue[0])`, asks+"listing"),
		),
		said(
			"The listing contains one element per coin-network pair.",
			inClient("many", `&records[len(records)-1]`, `&records[0]`, "TestClient_CoinNetworks_pairings"),
			inStandIn("Server.carryOut", `s.catalogue)`, `s.catalogue[:1])`, asks+"listing", "TestServer_seeded_listing"),
		),
	}
}

func byIdentifier() []statement {
	return []statement{
		said(
			"GET {base_url}/api/networks-coins/{id}.",
			inClient("Client.CoinNetwork", `"/api/networks-coins/{id}"`, `"/api/coins/{id}"`, wire+"CoinNetwork"), get("CoinNetwork"),
			inStandIn("match", `{"networks-coins/{}", `, `{"coins/{}", `, asks+"by id"), serves(asks+"by id"),
		),
		said(
			"Path parameter: id (string), the identifier of the coin-network record as obtained from the listing.",
			inClient("Client.CoinNetwork", `{id},`, `{"1"},`, wire+"CoinNetwork"),
			inClient("Client.CoinNetwork", "id:    id,", "", "TestClient_mismatch/row 75: another pair"),
			inStandIn("Server.coinNetwork", `p.ID == id`, `p.CoinID == id`, asks+"by id"),
		),
		said(
			"Returns the coin and its network.",
			inClient("coinNetworkFields", `recordField("coin", coinFields`, `recordField("coin", coinFields[:1]`, "TestDecode_values/CoinNetwork"),
			inClient("coinNetworkFields", `recordField("network", networkFields`, `recordField("network", networkFields[:1]`, "TestDecode_values/CoinNetwork"),
			inStandIn("Server.pair", `s.catalogue[i])`, `s.catalogue[i].Coin)`, asks+"by id"),
		),
		notShown(
			"Response body shape", "a coin-network record is read, or an array of exactly one.",
			inClient("one", `d.peek() != '['`, `true`, "TestDecode_listing/an array of one record is the record, CoinNetwork"),
			inClient("one", "if d.more() {", "if false {", "TestDecode_listing/an array of two records is not, CoinNetwork"),
			inStandIn("Server.pair", `s.shapes["pair"] == PairInArray`, `false`, "TestServer_SetShape/pair/array"),
		),
	}
}

func bySymbol() []statement {
	return []statement{
		said(
			"GET {base_url}/api/networks-coins/{coinSymbol}/{networkName}.",
			inClient("Client.CoinNetworkBySymbol", `"/api/networks-coins/{coinSymbol}`, `"/api/coins/{coinSymbol}`, wire+"CoinNetworkBySymbol"),
			get("CoinNetworkBySymbol"),
			inStandIn("match", `{"networks-coins/{}/{}", `, `{"coins/{}/{}", `, asks+"by symbol and network"), serves(asks+"by symbol and network"),
		),
		said(
			"coinSymbol: string, required. Ticker symbol of the coin.",
			inClient("Client.CoinNetworkBySymbol", `{coinSymbol, `, `{"BTC", `, wire+"CoinNetworkBySymbol"),
			inClient("checkPathText", `case text == "":`, `case false:`,
				paths+"CoinNetworkBySymbol, the symbol/row 22: nothing", paths+"CoinNetworksBySymbol/row 22: nothing"),
			inStandIn("Server.coinNetworkBySymbol", `p.Coin.Symbol == args[0] &&`, ``, asks+"by other symbol and network"),
		),
		said(
			"networkName: string, marked not required. Network name.",
			inClient("Client.CoinNetworkBySymbol", `coinSymbol, networkName},`, `coinSymbol, "Tron"},`, wire+"CoinNetworkBySymbol"),
			inClient("Client.CoinNetworksBySymbol", `{coinSymbol}"`, `{coinSymbol}/"`, wire+"CoinNetworksBySymbol"),
			inStandIn("Server.coinNetworkBySymbol", ` && p.Network.Name == args[1]`, ``, asks+"by symbol and other network"),
			inStandIn("Server.route", `s.isSymbol(c.args[0])`, `false`, asks+"by symbol"),
		),
		notShown(
			"Response body shape", "with a network, a coin-network record or an array of exactly one is read; without, an array or one record.",
			inClient("one", `d.peek() != '['`, `true`, "TestDecode_listing/an array of one record is the record, CoinNetworkBySymbol"),
			inClient("oneOrMany", `d.peek() == '['`, `true`, "TestDecode_listing/one record is an array of one by symbol"),
			inStandIn("Server.coinNetworkBySymbol", `s.shapes["symbol"] == SymbolAsRecord`, `false`, "TestServer_SetShape/symbol/record"),
		),
	}
}

func exchangeRate() []statement {
	const shapes, near = "TestClient_ExchangeRates_shapes/", "TestClient_ExchangeRates_nearMisses/"
	return []statement{
		said(
			"GET {base_url}/api/exchange-rate.",
			inClient("Client.ExchangeRates", `"/api/exchange-rate"`, `"/api/rates"`, wire+"ExchangeRates"), get("ExchangeRates"),
			inStandIn("match", `{"exchange-rate", `, `{"rates", `, "TestServer_SetShape/rates/records"), serves("TestServer_SetShape/rates/records"),
		),
		said(
			"Parameters: none.",
			inClient("Client.ExchangeRates", `"/api/exchange-rate",`, `"/api/exchange-rate", query: []param{{"page", "1"}},`, wire+"ExchangeRates"),
		),
		said(
			"Returns the current exchange rate of each supported cryptocurrency unit to both USD and EUR.",
			inClient("readRates", `time.Now()`, `time.Time{}`, shapes+"an array, symbol"),
			inClient("newRate", `eur, &rate.EUR`, `usd, &rate.EUR`, shapes+"an array, symbol"),
			inClient("newRate", `side.from.value == nil`, `side.from.value == nil && side.code == "USD"`, near+"a coin without a rate to euros"),
			inClient("newRate", `side.from.value == nil`, `side.from.value == nil && side.code == "EUR"`, near+"a coin without a rate to dollars"),
			inStandIn("fiats", `form(r.EUR)`, `form(r.USD)`, "TestServer_SetShape/rates/symbol"),
		),
		notShown(
			"Response body shape", "an array of records, records by symbol and rates by currency are understood, with texts or numbers; anything else is an error.",
			inClient("rates", `result.kind() == '['`, `false`, shapes+"an array, numbers"),
			inClient("rates", `return ratesByFiat(usd, eur)`, `return ratesOf(slices.Values(members))`, shapes+"a map by fiat"),
			inClient("rates", `slices.Values(members)`, `slices.Values(members[:0])`, shapes+"a map by symbol"),
			inClient("ratesOf", `symbol == ""`, `false`, near+"a record that names no coin"),
			inStandIn("Server.rateBody", `return byFiat`, `return s.rates`, "TestServer_SetShape/rates/fiat"),
			inStandIn("Server.rateBody", `return bySymbol`, `return s.rates`, "TestServer_SetShape/rates/symbol"),
		),
	}
}
