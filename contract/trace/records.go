package main

// A record is one that the client reads by a table, and that the stand-in writes
// from a struct.
type record struct {
	table, typ string // of the client, of the stand-in
	values     string // the client's test of all its values
	place      string // where it is in the client's test of single fields
	written    string // the stand-in's test of all its values
}

// A kind is how a field is read.
type kind int

const (
	isText kind = iota
	isAmount
	isFlag
	isInteger
	isTime
	isRecord
)

// field says that a record has a field: its name on the wire and in the stand-in,
// how it is read, and what the table has about it.
func (r record) field(wire, name string, k kind, table string, more ...claim) statement {
	single := r.place + "/" + wire
	named, typed := []string{r.values, single}, claim{}
	switch k {
	case isText:
		typed = inClient("decoder.scalar", `value := d.value()`, `value := d.value()
			if d.err == nil && kind == '"' && value.Kind() != '"' {
				return jsontext.Value(strconv.Quote(d.want))
			}`, single)
	case isAmount:
		typed = inClient("amountOf", `decimal.Decimal{}, errEmpty`, `decimal.Decimal{}, nil`, single)
	case isFlag:
		typed = inClient("decoder.flag", `kind != 't' && kind != 'f'`, `false`, single)
	case isInteger:
		typed = inClient("decoder.integer", `err != nil || !number.IsInteger()`, `err != nil`, single)
	case isTime:
		named = []string{r.values} // a time may be missing
		typed = inClient("parseTime", `at.UTC()`, `at.Local()`, r.values)
	case isRecord:
		typed = inClient("decoder.begin", `got != kind && got != 0`, `false`, single)
	}
	claims := []claim{
		inClient(r.table, `"`+wire+`"`, `"x"`, named...), typed,
		inStandIn(r.typ+"."+name, `"`+wire+`"`, `"x"`, r.written),
	}
	return said(wire+": "+table, append(claims, more...)...)
}

func records() []section {
	return []section{
		{"Coin-network record", coinNetworkRecord()},
		{"Network record", networkRecord()},
		{"Coin record", coinRecord()},
		{"Invoice", []statement{
			notShown(
				"Request fields are given under Endpoints. Fields of the stored or returned invoice record", "the result is kept byte for byte; Text and Decode read it.",
				inClient("InvoiceRequest.read", `Raw: raw(d)`, `Raw: raw(d)[:1]`, "TestClient_CreateInvoice_raw/a record in an odd order, with spaces and escapes"),
				inClient("Invoice.Decode", `json.Unmarshal(i.Raw, v)`, `json.Unmarshal(nil, v)`, "TestInvoice_Decode/into the caller's struct"),
				inStandIn("Server.createInvoice", `s.shapes["invoice"] == InvoiceNested`, `false`, "TestServer_SetShape_of_an_invoice/invoice/nested"),
			),
		}},
		{"Withdrawal inquiry result", withdrawalRecord()},
	}
}

// uuid is the form of the identifiers.
func uuid() claim {
	return inStandIn("formatID", `%x-%x-%x-%x-%x`, `%x%x%x%x%x`, "TestServer_seeded_listing")
}

// stamp is the form of the timestamps.
func stamp() claim {
	return inStandIn("seedCreated", `43.000Z`, `43`, "TestServer_seeded_listing")
}

func updated() claim {
	return inStandIn("seedUpdated", `05.000Z`, `05`, "TestServer_seeded_listing")
}

func coinNetworkRecord() []statement {
	r := record{"coinNetworkFields", "CoinNetwork", "TestDecode_values/CoinNetwork", "TestDecode_fields/CoinNetwork /result", "TestServer_answers/listing"}
	return []statement{
		r.field("id", "ID", isText, "string. Identifier of the coin-network pair (UUID format).", uuid()),
		r.field("withdrawalFee", "WithdrawalFee", isAmount, "string. Decimal number in a string."),
		r.field("swapFee", "SwapFee", isAmount, "string. Decimal number in a string."),
		r.field("minWithdraw", "MinWithdraw", isAmount, "string. Decimal in a string; minimum withdrawal amount."),
		r.field("maxWithdraw", "MaxWithdraw", isAmount, "string. Decimal in a string; maximum withdrawal amount."),
		r.field("depositable", "Depositable", isFlag, "boolean. Whether deposits are possible.",
			inClient("CoinNetwork.CheckPayment", `p.Depositable`, `true`, "TestCoinNetwork_flags/deposits are off"),
			inStandIn("seedCatalogue", `p.closed != "deposits"`, `true`, "TestServer_seeded_listing")),
		r.field("withdrawable", "Withdrawable", isFlag, "boolean. Whether withdrawals are possible.",
			inClient("CoinNetwork.withdrawalLimits", `p.Withdrawable`, `true`, "TestCoinNetwork_flags/withdrawals are off"),
			inStandIn("seedCatalogue", `p.closed != "withdrawals"`, `true`, "TestServer_seeded_listing")),
		r.field("confirmation", "Confirmations", isInteger, "integer. Number of confirmations."),
		r.field("arrivalTime", "ArrivalTime", isInteger, "integer. Arrival time."),
		r.field("expirationTime", "ExpirationTime", isInteger, "integer. Expiration time."),
		r.field("networkId", "NetworkID", isText, "string. Identifier of the network; equals network.id.",
			inClient("networkIDs", `p.NetworkID, p.Network.ID`, `p.NetworkID, p.NetworkID`, "TestObserver_drift/a networkId of another network"),
			inStandIn("seedCatalogue", `NetworkID:      network.ID`, `NetworkID:      coin.ID`, "TestServer_seeded_listing")),
		r.field("coinId", "CoinID", isText, "string. Identifier of the coin; equals coin.id.",
			inClient("coinIDs", `p.CoinID, p.Coin.ID`, `p.CoinID, p.CoinID`, "TestObserver_drift/a coinId of another coin, which comes after the coin"),
			inStandIn("seedCatalogue", `CoinID:         coin.ID`, `CoinID:         network.ID`, "TestServer_seeded_listing")),
		r.field("created_at", "CreatedAt", isTime, "string. ISO 8601 UTC timestamp.", stamp()),
		r.field("updated_at", "UpdatedAt", isTime, "string. ISO 8601 UTC timestamp.", updated()),
		r.field("network", "Network", isRecord, "object. Network record."),
		r.field("coin", "Coin", isRecord, "object. Coin record."),
		notShown(
			"Units of arrivalTime and expirationTime", "both are plain integers, as they came.",
			inClient("decoder.integer", "return n\n", "return n * 60\n", "TestDecode_values/CoinNetwork"),
		),
	}
}

func networkRecord() []statement {
	r := record{"networkFields", "Network", "TestDecode_values/CoinNetwork", "TestDecode_fields/CoinNetwork /result/network", "TestServer_answers/listing"}
	return []statement{
		r.field("id", "ID", isText, "string. UUID format.", uuid()),
		r.field("name", "Name", isText, "string. Network name, for example a blockchain name.",
			inClient("base.fill", `before...), arg...)`, `before...), strings.ToLower(arg)...)`, "TestClient_Wire/CoinNetworkBySymbol")),
		r.field("isActive", "IsActive", isFlag, "boolean."),
		r.field("created_at", "CreatedAt", isTime, "string. ISO 8601 UTC timestamp.", stamp()),
		r.field("updated_at", "UpdatedAt", isTime, "string. ISO 8601 UTC timestamp.", updated()),
	}
}

func coinRecord() []statement {
	r := record{"coinFields", "Coin", "TestDecode_values/CoinNetwork", "TestDecode_fields/CoinNetwork /result/coin", "TestServer_answers/listing"}
	return []statement{
		r.field("id", "ID", isText, "string. UUID format.", uuid()),
		r.field("name", "Name", isText, "string. Coin name."),
		r.field("symbol", "Symbol", isText, "string. Ticker symbol, upper case (for example a three- or four-letter code).",
			inStandIn("seedCoins", `Symbol: "LTC"`, `Symbol: "ltc"`, "TestServer_seeded_listing")),
		r.field("precision", "Precision", isInteger, "integer. Number of decimal places."),
		r.field("minAmount", "MinAmount", isAmount, "string. Decimal in a string with eight fractional digits.",
			inClient("newDecimal", `smallInt(digits), int32(exponent))`, `smallInt(digits), int32(exponent)).Normalize()`, "TestDecode_values/CoinNetwork"),
			inStandIn("seedCoins", `"0.00001000"`, `"0.00001"`, "TestServer_seeded_listing")),
		r.field("isActive", "IsActive", isFlag, "boolean."),
		r.field("created_at", "CreatedAt", isTime, "string. ISO 8601 UTC timestamp.", stamp()),
		r.field("updated_at", "UpdatedAt", isTime, "string. ISO 8601 UTC timestamp.", updated()),
		said(
			"A coin can appear with more than one network and a network with more than one coin; each pairing is its own coin-network record.",
			inClient("many", `&records[len(records)-1]`, `&records[0]`, "TestClient_CoinNetworks_pairings"),
			inClient("CoinNetwork.pairName", `p.Network.Name`, `""`, "TestClient_CoinNetworks_pairings"),
			inStandIn("seedPairs", `"USDT", "Polygon"`, `"TRX", "Polygon"`, "TestServer_seeded_listing"),
		),
	}
}

func withdrawalRecord() []statement {
	r := record{"withdrawalFields", "Withdrawal", "TestDecode_values/Withdrawal", "TestDecode_fields/Withdrawal /result", "TestServer_answers/withdrawal"}
	return []statement{
		r.field("status", "Status", isText, "string (one of the withdrawal statuses).",
			inClient("readStatus", `d.note(DriftUnknownStatus)`, ``, "TestObserver_drift/a status")),
		r.field("destination", "Destination", isText, "string."),
		r.field("amount", "Amount", isAmount, "string."),
		r.field("fee", "Fee", isAmount, "string."),
		r.field("coin", "Coin", isText, "string."),
		r.field("network", "Network", isText, "string."),
		r.field("withdrawRequestId", "WithdrawRequestID", isText, "string.",
			inClient("decoder.identifier", `string(unquote(value)) == d.want`, `true`, "TestClient_mismatch/row 75: another withdrawal")),
	}
}
