package main

const (
	inWords   = "TestErrors/a refusal with words"
	anyStatus = "TestErrors/a refusal for a missing key" // its status is 418
)

// The sections of INTERFACE.md after its endpoints.
func rules() []section {
	return []section{
		{"Authentication", append(keyPlaces(), keyRules()...)},
		{"Events", []statement{
			notShown(
				"Events", "the client listens to nothing; who waits for a withdrawal asks for it again and again.",
				inClient("Client.ExchangeRates", `"/api/exchange-rate"`, `"/api/events"`, "TestClient_routes"),
				inClient("poller.sleep", `<-timer.C`, `<-ctx.Done()`, "TestClient_WaitWithdrawal/it is pending for a while"),
			),
		}},
		{"Errors", append(failures(), notListed()...)},
		{"Limits", limits()},
		{"Versioning", []statement{
			notShown(
				"Versioning", "the client sends no version, in no header and no path.",
				inClient("exchange.newHeader", `{"application/json",`, `{"application/json; version=1",`, wire+"CoinNetworks", wire+"CreateInvoice"),
			),
			said(
				"Paths carry the prefix /api with no version segment.",
				inClient("Client.CoinNetworks", `"/api/`, `"/api/v1/`, "TestClient_routes", wire+"CoinNetworks"),
				inStandIn("match", `"/"+prefix+"/api/"`, `"/"+prefix+"/api/v1/"`, asks+"listing"),
			),
		}},
	}
}

func keyPlaces() []statement {
	return []statement{
		said(
			"Balance by API key: header x-api-key.",
			inClient("Client.Balance", `keyInHeader`, `keyNowhere`, wire+"Balance"),
			inClient("exchange.newHeader", `"X-Api-Key"`, `"X-Api-Token"`, wire+"Balance"),
			inStandIn("Server.identify", `c.r.Header.Get("X-Api-Key")`, `c.r.Header.Get("X-Api-Token")`, asks+"balance"),
		),
		said(
			"Withdrawal inquiry: header x-api-Key (header names are case-insensitive in HTTP).",
			inClient("Client.Withdrawal", `keyInHeader`, `keyNowhere`, wire+"Withdrawal"),
			inClient("exchange.newHeader", `"X-Api-Key"`, `"X-Api-Token"`, wire+"Withdrawal"),
			inStandIn("Server.identify", `c.r.Header.Get("X-Api-Key")`, `c.r.Header.Get("X-Api-Token")`, asks+"withdrawal"),
		),
		said(
			"Create invoice: body field apiKey.",
			inClient("Client.CreateInvoice", `keyInBody`, `keyInHeader`, wire+"CreateInvoice"),
			inClient("InvoiceRequest.encode", `"apiKey"`, `"key"`, wire+"CreateInvoice"),
			inStandIn("object.key", `o["apiKey"]`, `o["x"]`, creates+"strings and apiKey"),
		),
	}
}

func keyRules() []statement {
	return []statement{
		said(
			"The key is the gateway API key generated for the merchant (<API_KEY>).",
			inClient("New", `newSecret(apiKey),`, `newSecret("another"),`, wire+"Balance", wire+"CreateInvoice", wire+"Withdrawal"),
			inStandIn("Server.identify", `"header", key == s.key`, `"header", true`, asks+"balance with wrong key"),
			inStandIn("Server.identify", `isText && key == s.key`, `isText && key != ""`, refuses+"wrong key"),
		),
		said(
			"When the key header is absent on a header-authenticated operation, the request is rejected with the error body described under Errors.",
			inClient("exchange.takeKey", `x.key.empty()`, `false`, missing+"Balance", missing+"Withdrawal"),
			inClient("APIError.Is", `return e.missingKey`, `return false`, anyStatus),
			inStandIn("call.refuseHeaderKey", `case c.keyIn == "":`, `case false:`, asks+"balance without key", asks+"withdrawal without key"),
		),
		notShown(
			"Whether listing, lookup and exchange-rate operations require a key", "none is sent, but with WithAPIKeyOnPublicCalls.",
			inClient("exchange.sendsKeyHeader", `x.client.cfg.keyOnPublic && `, ``, wire+"CoinNetworks", wire+"CoinNetwork", wire+"CoinNetworkBySymbol", wire+"ExchangeRates"),
			inClient("WithAPIKeyOnPublicCalls", `cfg.keyOnPublic = true`, ``, "TestClient_Wire_keyOnPublicCalls/CoinNetworks", "TestClient_Wire_keyOnPublicCalls/ExchangeRates"),
			inStandIn("Server.carryOut", `if c.op == ""`, `if c.keyIn == "" && c.r.Method == http.MethodGet {
				return failure(http.StatusUnauthorized, "x-api-key header is required")
			}
			if c.op == ""`, asks+"listing", asks+"by id", asks+"by symbol and network"),
		),
	}
}

func failures() []statement {
	return []statement{
		said(
			"Errors are returned with an appropriate HTTP status code and the envelope.",
			inClient("exchange.receive", `resp.StatusCode >= 400`, `resp.StatusCode >= 500`, inWords),
			inStandIn("noPair", `http.StatusNotFound`, `http.StatusOK`, asks+"by unknown id"),
		),
		said(
			"message describes the issue.",
			inClient("exchange.apiError", `Message: e.message`, `Message: ""`, inWords),
			inStandIn("failure", `message: message, `, ``, asks+"by unknown id"),
		),
		said(
			"result is an empty array.",
			inClient("one", `d.refused = d.end()`, `d.end()`, "TestDecode_refusedWithSuccess/an empty array where a record is expected, whatever the message, Withdrawal"),
			inClient("open", `d.refused || d.empty && !e.success`, `d.refused`, "TestDecode_refusedWithSuccess/an empty array with another message, CoinNetworks"),
			inStandIn("failure", `"[]"`, `"{}"`, asks+"by unknown id"),
		),
		said(
			"meta is an empty object.",
			inClient("exchange.apiError", `Meta: e.meta`, `Meta: nil`, "TestDecode_refusedWithSuccess/an empty array with another message, Balance"),
			inStandIn("answer.body", `"meta":{}`, `"meta":{"page":1}`, asks+"by unknown id"),
		),
		said(
			`When the x-api-key header is missing, message is the text "x-api-key header is required".`,
			inClient("missingKeyMessage", `is required`, `is missing`, anyStatus),
			inClient("envelope.readMessage", `string(message) == missingKeyMessage`, `len(message) == len(missingKeyMessage)`, "TestErrors/a refusal for a key, in other words"),
			inStandIn("call.refuseHeaderKey", `x-api-key header is required`, `x-api-key header is missing`, asks+"balance without key", asks+"withdrawal without key"),
		),
	}
}

func notListed() []statement {
	return []statement{
		notShown(
			"HTTP status code for the missing-header case", "the error matches ErrMissingAPIKey by its text, whatever the status.",
			inClient("APIError.Is", `return e.missingKey`, `return e.missingKey && e.StatusCode == 401`, anyStatus,
				"TestDecode_refusedWithSuccess/the documented text for a missing key counts with a 2xx too"),
		),
		notShown(
			"Full list of error statuses and messages per operation", "every status has an error and every invoice an outcome; the message is handed on in the service's own words.",
			inClient("refusesInvoice", `status >= 409 && status <= 417`, `status >= 410 && status <= 417`, "TestClient_EveryStatus/CreateInvoice"),
			inClient("passingStatus", `408, `, `404, 408, `, "TestClient_EveryStatus/Withdrawal"),
			inClient("APIError.Error", `%q`, `%s`, "TestErrors/a refusal with words of several lines"),
		),
	}
}

func limits() []statement {
	const withdraws, nets, pays = "TestCoinNetwork_CheckWithdrawal/", "TestCoinNetwork_NetWithdrawal/", "TestCoinNetwork_CheckPayment/"
	return []statement{
		said(
			"Per coin-network record: minWithdraw and maxWithdraw bound a withdrawal amount.",
			inClient("CoinNetwork.withdrawalLimits", `p.MinWithdraw, atLeast`, `p.MinWithdraw, unbounded`, withdraws+"one unit below the least does not pass"),
			inClient("CoinNetwork.withdrawalLimits", `p.MaxWithdraw, atMost`, `p.MaxWithdraw, unbounded`, withdraws+"one unit above the most does not pass"),
		),
		said(
			"withdrawalFee and swapFee are fees.",
			inClient("CoinNetwork.NetWithdrawal", `amount.Sub(p.WithdrawalFee)`, `amount`, nets+"the fee is taken from the amount"),
			inClient("coinNetworkFields", `return &p.SwapFee`, `return new(decimal.Decimal)`, "TestDecode_values/CoinNetwork"),
		),
		said(
			"confirmation is the required confirmations.",
			inClient("coinNetworkFields", `return &p.Confirmations`, `return new(int)`, "TestDecode_values/CoinNetwork"),
		),
		said(
			"coin.minAmount is the coin's minimum amount.",
			inClient("CoinNetwork.CheckPayment", `p.Coin.MinAmount, atLeast`, `p.Coin.MinAmount, unbounded`, pays+"one unit below the least does not pass"),
		),
		said(
			"coin.precision is its decimal places.",
			inClient("limits.check", `!fits(amount, l.places)`, `false`, withdraws+"a place too many is rounded down", pays+"a place too many is rounded to the nearest"),
		),
		notShown(
			"Rate limits and request size limits", "429 and Retry-After are honoured when they come; texts and amounts of a request are bounded by the client itself.",
			inClient("exchange.again", `throttled), asked, 1)`, `throttled), 1)`, "TestRetry_RetryAfter/row 38: 1 s"),
			inClient("APIError.Is", `http.StatusTooManyRequests`, `http.StatusTeapot`, "TestErrors/too many requests"),
			inClient("InvoiceRequest.check", `checkText(r.OrderID, maxBodyText)`, `checkText(r.OrderID, 9999)`, texts+"row 30: 1,025 bytes of order"),
			inStandIn("call.refuseInvoice", `len(c.body) > maxBody`, `false`, refuses+"64 KiB and a byte"),
			inStandIn("overLimit", `http.StatusTooManyRequests`, `http.StatusTeapot`, "TestServer_SetRateLimit"),
		),
	}
}
