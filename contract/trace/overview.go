package main

// The sections of INTERFACE.md before its records.
func overview() []section {
	return []section{
		{"The page as a whole", wholePage()},
		{"What the service does", purpose()},
		{"Response envelope", append(envelope(), result()...)},
	}
}

func wholePage() []statement {
	return []statement{
		said(
			"This document covers the whole interface of the service: coin and network listing, exchange rates, balance lookup, invoice creation and withdrawal inquiry.",
			inClient("Client.CoinNetworks", `"/api/networks-coins"`, `"/api/coins"`, "TestClient_routes", "TestClient_Wire/CoinNetworks"),
			inClient("Client.ExchangeRates", `"/api/exchange-rate"`, `"/api/rates"`, "TestClient_routes", "TestClient_Wire/ExchangeRates"),
			inClient("Client.Balance", `"/api/balance/"`, `"/api/balances/"`, "TestClient_routes", "TestClient_Wire/Balance"),
			inClient("Client.CreateInvoice", `"/api/invoice/create"`, `"/api/invoices"`, "TestClient_routes", "TestClient_Wire/CreateInvoice"),
			inClient("Client.Withdrawal", `"/api/withdrawal/inquiry/{`, `"/api/withdrawal/{`, "TestClient_routes", "TestClient_Wire/Withdrawal"),
			inStandIn("Server.carryOut", `http.StatusNotFound, "no such route"`, `http.StatusOK, "no such route"`, asks+"no route"),
		),
		said(
			"All paths are relative to {base_url}.",
			inClient("newBase", `path: u.Path, rawPath: u.RawPath`, `path: "", rawPath: ""`, "TestClient_Wire_baseURL/row 9: a prefix is kept"),
			inStandIn("match", `"/"+prefix+"/api/"`, `"/api/"`, asks+"listing"),
		),
		said(
			"Bodies are JSON.",
			inClient("InvoiceRequest.encode", `appendQuoted(body, key)`, `append(body, key...)`, "TestClient_CreateInvoice_body/every field"),
			inClient("open", `d.err == nil && !d.eof()`, `false`, "TestDecode_brokenEnvelope/row 56: a page after the document, Balance"),
			inStandIn("parseObject", ` || !json.Valid(body)`, ``, "TestServer_refuses_an_invoice/cut"),
		),
	}
}

func purpose() []statement {
	return []statement{
		said(
			"The service is a cryptocurrency payment gateway for merchants. It provides a catalogue of supported coins, the networks they run on, and per-pair fees, limits and flags.",
			inClient("coinNetworkFields", `(*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.SwapFee }`,
				`(*decoder).amount, func(p *CoinNetwork) *decimal.Decimal { return &p.WithdrawalFee }`, "TestDecode_values/CoinNetworks"),
			inStandIn("seedCatalogue", `WithdrawalFee:  p.fee`, `WithdrawalFee:  ""`, "TestServer_seeded_listing"),
		),
		said(
			"Exchange rates of each supported cryptocurrency unit to USD and to EUR.",
			inClient("newRate", `eur, &rate.EUR`, `usd, &rate.EUR`, "TestClient_ExchangeRates_shapes/an array, symbol"),
			inStandIn("fiats", `form(r.EUR)`, `form(r.USD)`, "TestServer_SetShape/rates/symbol"),
		),
		said(
			"A balance lookup for the holder of an API key, optionally narrowed by coin and network.",
			inClient("Client.Balance", `, {"networkName", q.NetworkName}`, ``, "TestClient_Balance_query/both, in the order of the interface"),
			inStandIn("Server.balance", `b.NetworkName != network`, `b.NetworkName == ""`, asks+"balance by network"),
		),
		said(
			"Creation of invoices through the API.",
			inClient("Client.CreateInvoice", `write: &r,`, ``, "TestClient_Wire/CreateInvoice"),
			inStandIn("Server.createInvoice", `s.invoices = append(s.invoices, invoice)`, ``, "TestServer_creates_an_invoice/strings and apiKey"),
		),
		said(
			"Invoices can also be created manually, which is outside this interface.",
			inClient("Client.CreateInvoice", `"/api/invoice/create"`, `"/api/invoices"`, "TestClient_routes"),
		),
		said(
			"Inquiry of the status of a withdrawal request.",
			inClient("withdrawalFields", `return &w.Status`, `return new(WithdrawalStatus)`, "TestDecode_values/Withdrawal"),
			inStandIn("Server.inquire", `success(http.StatusCreated, w.Withdrawal)`, `success(http.StatusCreated, w.Status)`, asks+"withdrawal"),
		),
	}
}

const (
	refused = "TestDecode_refusedWithSuccess/an empty array with another message, Balance"
	unknown = asks + "by unknown id"
)

func envelope() []statement {
	return []statement{
		said(
			"Responses that are described use one envelope: message, result, meta.",
			inClient("open", `d.failAt("result", errMissing)`, ``, "TestDecode_notAnEnvelope/row 55: an envelope without a result, CoinNetworks"),
			inStandIn("answer.body", `"{" + a.extra`, `"{\"data\":1," + a.extra`, asks+"listing", unknown),
		),
		said(
			"message: string. Human-readable text.",
			inClient("open", `case "message":`, `case "text":`, refused),
			inClient("envelope.readMessage", `d.peek() != '"'`, `false`, "TestDecode_lenientEnvelope/row 63: the message is a number, Balance"),
			inStandIn("answer.body", "\"message\":", "\"text\":", asks+"listing", unknown),
		),
		said(
			`On success it is the constant "Operation was successful."`,
			inClient("successMessage", `successful.`, `successful`, "TestDecode_listing/a listing of none is empty, not nil, CoinNetworks"),
			inStandIn("successText", `successful.`, `successful`, asks+"listing"),
		),
	}
}

func result() []statement {
	return []statement{
		said(
			"result: object or array. Payload.",
			inClient("open", `case "result":`, `case "data":`, "TestDecode_values/CoinNetworks", "TestDecode_values/Withdrawal"),
			inStandIn("answer.body", `"result":`, `"data":`, asks+"listing", unknown),
		),
		said(
			"A list for the coin-network listing.",
			inClient("readPairs", `many(`, `oneOrMany(`, "TestDecode_listing/row 61: an object where an array is expected"),
			inStandIn("Server.carryOut", `s.catalogue)`, `s.catalogue[0])`, asks+"listing"),
		),
		said(
			"An object for a withdrawal inquiry.",
			inClient("one", `fs.fill(d, record)
			return record`, `return record`, "TestDecode_values/Withdrawal"),
			inStandIn("Server.inquire", `success(http.StatusCreated, w.Withdrawal)`, `success(http.StatusCreated, []Withdrawal{w.Withdrawal})`, asks+"withdrawal"),
		),
		said(
			"An empty array in the error example.",
			inClient("open", `d.refused || d.empty && !e.success`, `d.refused`, refused),
			inStandIn("failure", `"[]"`, `"{}"`, unknown),
		),
		said(
			"meta: object. Empty object in every described response.",
			inClient("open", `case "meta":`, `case "more":`, refused),
			inStandIn("answer.body", `"meta":{}`, `"meta":{"page":1}`, asks+"listing", unknown),
		),
	}
}
