package main

import "slices"

const (
	missing = "TestClient_missingAPIKey/row 10: an empty key, "
	body    = "TestClient_CreateInvoice_body/"
	texts   = "TestClient_CreateInvoice_refusesTexts/"
	amounts = "TestClient_CreateInvoice_refusesAmounts/row 36: a zero amount is required, "
	creates = "TestServer_creates_an_invoice/"
	refuses = "TestServer_refuses_an_invoice/"
)

// The endpoints of INTERFACE.md that belong to the holder of a key.
func account() []section {
	return []section{
		{"Endpoint 5. Balance by API key", balance()},
		{"Endpoint 6. Create invoice", invoice()},
		{"Endpoint 7. Withdrawal inquiry", append(inquiry(), inquired()...)},
	}
}

func balance() []statement {
	const query = "TestClient_Balance_query/"
	return []statement{
		said(
			"GET {base_url}/api/balance/ with query parameters.",
			inClient("Client.Balance", `"/api/balance/"`, `"/api/balance"`, wire+"Balance"), get("Balance"),
			inStandIn("match", `{"balance/", `, `{"balance", `, asks+"balance", asks+"balance without slash"), serves(asks+"balance"),
		),
		said(
			"Header x-api-key: string, required. The gateway API key (<API_KEY>).",
			inClient("Client.Balance", `keyInHeader`, `keyNowhere`, wire+"Balance"),
			inClient("exchange.newHeader", `"X-Api-Key"`, `"X-Api-Token"`, wire+"Balance"),
			inClient("exchange.takeKey", `x.key.empty()`, `false`, missing+"Balance"),
			inStandIn("Server.identify", `c.r.Header.Get("X-Api-Key")`, `c.r.Header.Get("X-Api-Token")`, asks+"balance"),
			inStandIn("Server.balance", `refused := c.refuseHeaderKey(); refused`, `refused := c.refuseHeaderKey(); false && refused`, asks+"balance without key"),
		),
		said(
			"Query coinSymbol: string. Ticker symbol of the coin whose balance is wanted. Not marked required.",
			inClient("Client.Balance", `{"coinSymbol", `, `{"coin", `, query+"a coin"),
			inClient("base.aim", `p.value != ""`, `true`, query+"nothing asked: no question mark"),
			inStandIn("Server.balance", `query.Get("coinSymbol")`, `""`, asks+"balance"),
			inStandIn("Server.balance", `symbol != "" && `, ``, asks+"balance by network"),
		),
		said(
			"Query networkName: string. Name of the network the coin runs on. Not marked required.",
			inClient("Client.Balance", `{"networkName", `, `{"network", `, query+"row 33: a network without a coin is sent as given"),
			inClient("base.aim", `p.value != ""`, `true`, query+"a coin"),
			inStandIn("Server.balance", `query.Get("networkName")`, `""`, asks+"balance by network"),
			inStandIn("Server.balance", `network != "" && `, ``, asks+"balance"),
		),
		balanceShape(),
	}
}

func balanceShape() statement {
	const shapes, near = "TestClient_Balance_shapes/", "TestClient_Balance_nearMisses/"
	return notShown(
		"Response body shape", "an amount, a record, an array of records and a map by symbol are understood; anything else is an error.",
		inClient("BalanceQuery.amounts", ` || isRecord`, ` || isRecord && false`, shapes+"a record, balance"),
		inClient("BalanceQuery.amounts", `items = result.elements()`, `items = nil`, shapes+"an array of records"),
		inClient("BalanceQuery.amounts", `result.kind() != '{' || `, ``, shapes+"an amount, of what was asked for"),
		inClient("BalanceQuery.amount", `n.holder(), `, ``, shapes+"amounts by symbol"),
		inClient("balanceOf", `"balance", "amount", "available"`, `"balance", "amount", "available", "total"`, near+"an array of records of other names"),
		inStandIn("Server.balance", `shape == BalanceBare && `, `false && `, "TestServer_SetShape/balance/bare"),
	)
}

func invoice() []statement {
	all := []statement{
		said(
			"POST {base_url}/api/invoice/create.",
			inClient("Client.CreateInvoice", `"/api/invoice/create"`, `"/api/invoices"`, wire+"CreateInvoice"),
			inClient("exchange.newAttemptRequest", `http.MethodPost`, `http.MethodPut`, wire+"CreateInvoice"),
			inStandIn("match", `{"invoice/create", `, `{"invoices", `, creates+"strings and apiKey"),
			inStandIn("Server.carryOut", `http.MethodPost`, `http.MethodPut`, creates+"strings and apiKey"),
		),
		said(
			"Content-Type: application/json.",
			inClient("exchange.newHeader", ` || x.call.write != nil`, ``, wire+"CreateInvoice"),
			inStandIn("call.refuseInvoice", `mediaType != "application/json"`, `mediaType == ""`, "TestServer_refuses_other_media_types/text/json"),
		),
	}
	return slices.Concat(all, invoiceKey(), invoiceFields(), invoiceNotes())
}

func invoiceKey() []statement {
	return []statement{
		said(
			"apiKey: string, required. The generated API key (<API_KEY>).",
			inClient("InvoiceRequest.encode", `"apiKey"`, `"key"`, body+"every field"),
			inClient("exchange.takeKey", `x.key.empty()`, `false`, missing+"CreateInvoice"),
			inStandIn("call.refuseInvoice", `!apiKey && !apikey`, `false`, refuses+"no key"),
			inStandIn("Server.identify", `isText && key == s.key`, `isText && key != ""`, refuses+"wrong key"),
			inStandIn("Server.identify", `isText && key == s.key`, `!isText || key == s.key`, refuses+"key is a number"),
		),
		said(
			"The field table spells it apikey, the sample request spells it apiKey; both spellings occur.",
			inClient("InvoiceRequest.encode", `"apikey"`, `"apiKey"`, body+"every field in the table's spelling"),
			inStandIn("object.key", `o["apiKey"]`, `o["x"]`, creates+"strings and apiKey"),
			inStandIn("object.key", `o["apikey"]`, `o["x"]`, creates+"numbers and apikey"),
		),
	}
}

// choice is a field that is not required: it is left out when it is empty.
func choice(name, meaning, member, alone string) statement {
	return said(
		name+": string, not required. "+meaning,
		inClient("InvoiceRequest.encode", `"`+name+`"`, `"x"`, body+"every field"),
		inClient("InvoiceRequest.encode", `optional.value != ""`, `true`, body+"row 46: empty optional fields are left out", "TestClient_CreateInvoice_optionalFields/"+alone),
		inStandIn("object.invoice", `i.`+member+`, ok = text(value)`, `_, ok = text(value)`, creates+"all fields, mixed, spaced"),
	)
}

func invoiceFields() []statement {
	return []statement{
		said(
			"price: number, required. Price amount in fiat currency.",
			inClient("InvoiceRequest.encode", `"price"`, `"x"`, body+"every field"),
			inClient("InvoiceRequest.check", `checkAmount(r.Price)`, `checkSize(r.Price)`, amounts+"price"),
			inStandIn("object.invoice", `i.Price, i.PriceQuoted, ok =`, `i.Price, _, ok =`, creates+"strings and apiKey"),
			inStandIn("object.invoice", `{"price", i.Price}`, `{"price", "1"}`, refuses+"no price"),
		),
		said(
			"orderId: string, required. Merchant's unique order identifier, used to track the order.",
			inClient("InvoiceRequest.encode", `"orderId"`, `"x"`, body+"every field"),
			inClient("InvoiceRequest.check", `r.OrderID == ""`, `false`, texts+"row 42: no order"),
			inClient("InvoiceRequest.read", `OrderID: r.OrderID`, `OrderID: ""`, "TestClient_CreateInvoice_raw/a record"),
			inClient("memoryGuard.Begin", `case state.unknown && !resubmit:`, `case false:`, "TestClient_CreateInvoice_orderUnknown"),
			inStandIn("object.invoice", `i.OrderID, ok = text(value)`, `_, ok = text(value)`, creates+"strings and apiKey"),
			inStandIn("object.invoice", `{"orderId", i.OrderID}`, `{"orderId", "1"}`, refuses+"no order"),
		),
		choice("baseCurrency", "The merchant's base (fiat) currency; the sample uses a lower-case currency code.", "BaseCurrency", "the coin"),
		choice("coinSymbol", "Payment coin of the order (ticker symbol).", "CoinSymbol", "the network"),
		choice("networkName", "Payment network of the order.", "NetworkName", "the currency"),
		said(
			"amount: number, required. The order's amount.",
			inClient("InvoiceRequest.encode", `"amount"`, `"x"`, body+"every field"),
			inClient("InvoiceRequest.check", `checkAmount(r.Amount)`, `checkSize(r.Amount)`, amounts+"amount"),
			inStandIn("object.invoice", `i.Amount, i.AmountQuoted, ok =`, `i.Amount, _, ok =`, creates+"strings and apiKey"),
			inStandIn("object.invoice", `{"amount", i.Amount}`, `{"amount", "1"}`, refuses+"no amount"),
		),
	}
}

func invoiceNotes() []statement {
	return []statement{
		said(
			"The sample request sends price and amount as decimal strings although the table types them number.",
			inClient("InvoiceRequest.encode", `format == TableInvoiceFormat`, `true`, body+"every field"),
			inClient("InvoiceRequest.encode", `"apikey", ""`, `"apikey", quote`, body+"every field in the table's spelling"),
			inStandIn("decimal", `return s, true, isDecimal(s)`, `return s, true, false`, creates+"strings and apiKey"),
			inStandIn("decimal", `'0' <= value[0]`, `'a' <= value[0]`, creates+"numbers and apikey"),
		),
		notShown(
			"Response body", "the result is kept byte for byte, and nothing is guessed.",
			inClient("InvoiceRequest.read", `Raw: raw(d)`, `Raw: raw(d)[:1]`, "TestClient_CreateInvoice_raw/a record in an odd order, with spaces and escapes"),
			inClient("InvoiceRequest.read", `d.fail(errors.New("is null"))`, `_ = errors.New`, "TestClient_CreateInvoice_unreadable/row 60: null for a result"),
			inStandIn("Server.createInvoice", `s.shapes["invoice"] == InvoiceNested`, `false`, "TestServer_SetShape_of_an_invoice/invoice/nested"),
		),
		notShown(
			"Allowed values of baseCurrency", "it is sent as given; only a text that can be no code is refused.",
			inClient("InvoiceRequest.encode", `r.BaseCurrency}`, `string(bytes.ToLower([]byte(r.BaseCurrency)))}`,
				"TestClient_CreateInvoice_optionalFields/row 48: a currency that nobody knows is for the service to judge"),
			inClient("checkCurrency", `strings.ContainsFunc(code, unicode.IsSpace)`, `false`, texts+"row 47: a currency with a space"),
		),
	}
}

func inquiry() []statement {
	return []statement{
		said(
			"GET {base_url}/api/withdrawal/inquiry/{withdrawRequestId}.",
			inClient("Client.Withdrawal", `"/api/withdrawal/inquiry/`, `"/api/withdrawals/`, wire+"Withdrawal"), get("Withdrawal"),
			inStandIn("match", `{"withdrawal/inquiry/{}", `, `{"withdrawals/{}", `, asks+"withdrawal"), serves(asks+"withdrawal"),
		),
		said(
			"Path parameter: withdrawRequestId (string).",
			inClient("Client.Withdrawal", `{withdrawRequestID},`, `{"1"},`, wire+"Withdrawal"),
			inClient("checkPathText", `case text == "":`, `case false:`, paths+"Withdrawal/row 22: nothing"),
			inStandIn("Server.withdrawal", `w.WithdrawRequestID == id`, `true`, asks+"withdrawal unknown", "TestServer_seeded_withdrawals"),
		),
		said(
			"Headers: Content-Type with value application/json.",
			inClient("Client.Withdrawal", `json:  true,`, ``, wire+"Withdrawal"),
		),
		said(
			"x-api-Key (<API_KEY>), the API key.",
			inClient("Client.Withdrawal", `keyInHeader`, `keyNowhere`, wire+"Withdrawal"),
			inClient("exchange.takeKey", `x.key.empty()`, `false`, missing+"Withdrawal"),
			inStandIn("Server.identify", `"header", key == s.key`, `"header", true`, asks+"withdrawal with wrong key"),
			inStandIn("Server.inquire", `refused := c.refuseHeaderKey(); refused`, `refused := c.refuseHeaderKey(); false && refused`, asks+"withdrawal without key"),
		),
	}
}

func inquired() []statement {
	return []statement{
		said(
			"Success: HTTP status 201 Created.",
			inClient("exchange.receive", `resp.StatusCode >= 300`, `resp.StatusCode != 200`, wire+"Withdrawal", "TestDecode_status/row 84: status 201, Withdrawal"),
			inStandIn("Server.inquire", `http.StatusCreated`, `http.StatusOK`, asks+"withdrawal"),
		),
		said(
			"Body is the envelope with result holding the withdrawal inquiry result.",
			inClient("readWithdrawal", `one(withdrawalFields)`, `one(withdrawalFields[:1])`, "TestDecode_values/Withdrawal"),
			inStandIn("Server.inquire", `success(http.StatusCreated, w.Withdrawal)`, `success(http.StatusCreated, w.Status)`, asks+"withdrawal"),
		),
		said(
			"Errors: see Errors.",
			inClient("exchange.apiError", `Message: e.message`, `Message: ""`, "TestErrors/a refusal with words"),
			inStandIn("Server.inquire", `http.StatusNotFound, "no such withdrawal"`, `http.StatusOK, "no such withdrawal"`, asks+"withdrawal unknown"),
		),
		notShown(
			"Creation of a withdrawal request (the operation that yields withdrawRequestId)", "the client has none, and takes any identifier that can be in a path.",
			inClient("Client.Withdrawal", `"/api/withdrawal/inquiry/`, `"/api/withdrawals/`, "TestClient_routes"),
			inClient("maxPathText", `256`, `36`, "TestClient_Wire_pathArguments/256 bytes"),
		),
	}
}
