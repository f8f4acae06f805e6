package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The address and the link are shown only if they are those of the order and its amount is what
// the gateway expects. What concludes nothing about money is told, and stops nothing.
func TestPayment(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	names, err := parseNetworks("Bitcoin=BTC,Bitcoin=Bitcoin (SegWit)")
	require.NoError(t, err)
	all := paymentFields{address: "/to", tag: "/memo", amount: "/amount", deadline: "/until", tolerance: decimal.RequireFromString("0.02"), networks: names}
	exact, local := all, all
	exact.tolerance, local.zone = decimal.Zero, berlin
	link := paymentFields{link: "/links/0"}
	const (
		until   = ` until 2026-01-02T15:04:05Z`
		paid    = "1.5 to bc1q 7" + until
		nothing = ""
	)
	// with returns a sound response with other members, and without one.
	change := func(members, missing string) string {
		response := map[string]json.RawMessage{}
		sound := `{"to":"bc1q","memo":"7","amount":"1.50","until":"2026-01-02T15:04:05Z"}`
		require.NoError(t, errors.Join(json.Unmarshal([]byte(sound), &response), json.Unmarshal([]byte("{"+members+"}"), &response)))
		delete(response, missing)
		text, err := json.Marshal(response)
		require.NoError(t, err)
		return string(text)
	}
	with := func(members string) string { return change(members, "") }
	without := func(member string) string { return change("", member) }
	for name, test := range map[string]struct {
		fields   paymentFields
		response string
		want     string
		odd      string // what is odd; begins with "stops: " if nothing is shown
	}{
		"a sound response is shown":                         {all, with(``), paid, ""},
		"numbers are read as texts are":                     {all, with(`"memo":7,"amount":1.5,"until":1767366245`), paid, ""},
		"milliseconds are a time":                           {all, with(`"until":1767366245000`), paid, ""},
		"a link is shown":                                   {link, `{"links":["https://pay.example/1"]}`, "1.5 at https://pay.example/1", ""},
		"members deeper in the response are another matter": {all, with(`"networkName":"Bitcoin","coinSymbol":"BTC","orderId":"AAAAAAAAAAAAAAAAAAAAAAAAAA-mug","accepts":[{"networkName":"Tron","coinSymbol":"USDT","orderId":"8"}]`), paid, ""},

		"without settings nothing is shown":            {paymentFields{}, with(``), nothing, "stops: SHOP_INVOICE_ADDRESS and SHOP_INVOICE_LINK are not set"},
		"without a response nothing is shown":          {all, ``, nothing, "stops: the gateway's response is not known"},
		"a response that is cut off is not read":       {all, `{"to":"bc1q"`, nothing, "stops: the response is not JSON, or has a name twice"},
		"of two addresses none is shown":               {all, `{"to":"bc1q","to":"bc1p","memo":"7","amount":"1.5"}`, nothing, "stops: the response is not JSON, or has a name twice"},
		"an address that is missing is not guessed":    {all, without("to"), nothing, "stops: there is no readable /to"},
		"an address that is null is none":              {all, with(`"to":null`), nothing, "stops: the address or the link is empty"},
		"an address that is an object is none":         {all, with(`"to":{}`), nothing, "stops: there is no readable /to"},
		"an address with a space is two":               {all, with(`"to":"bc1q bc1p"`), nothing, "stops: there is no readable /to"},
		"a link without https is not shown":            {link, `{"links":["http://pay.example/1"]}`, nothing, "stops: /links/0 is not an https address"},
		"a link that is a script is not shown":         {link, `{"links":["javascript:alert(1)"]}`, nothing, "stops: /links/0 is not an https address"},
		"a link that is missing is not guessed":        {link, `{"links":[]}`, nothing, "stops: there is no readable /links/0"},
		"an array has no members":                      {link, `[]`, nothing, "stops: there is no readable /links/0"},
		"long names around many values are not read":   {all, with(`"` + strings.Repeat("n", 20000) + `":[` + strings.Repeat("1,", 100) + `1]`), nothing, "stops: the response has too many values, or too long names"},
		"what is nested without end is not read":       {all, with(`"n":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000)), nothing, "stops: the response has too many values, or too long names"},
		"a tag that only some coins have can be away":  {all, without("memo"), "1.5 to bc1q " + until, ""},
		"a tag that is null is none":                   {all, with(`"memo":null`), "1.5 to bc1q " + until, ""},
		"a tag that is empty is none":                  {all, with(`"memo":""`), "1.5 to bc1q " + until, ""},
		"a tag that cannot be read is not left out":    {all, with(`"memo":{"id":7}`), nothing, "stops: there is no readable /memo"},
		"an invoice of another coin is not shown":      {all, with(`"coinSymbol":"LTC"`), nothing, "stops: the response for the coin BTC names LTC"},
		"a coin in another case is that coin":          {all, with(`"coinSymbol":"btc"`), paid, ""},
		"a network that nobody has declared":           {all, with(`"networkName":"Lightning"`), nothing, "stops: the response for the network Bitcoin names Lightning"},
		"of two networks, neither is taken":            {all, with(`"from":{"networkName":"Bitcoin"},"at":{"networkName":"Tron"}`), nothing, "stops: the response for the network Bitcoin names Tron"},
		"a network without a name is none":             {all, with(`"networkName":"-"`), nothing, "stops: the response for the network Bitcoin names -"},
		"a network in another spelling":                {all, with(`"networkName":"BIT-coin "`), paid, ""},
		"a network by a name that is declared":         {all, with(`"networkName":"btc"`), paid, ""},
		"a name with punctuation that is declared":     {all, with(`"networkName":"Bitcoin SegWit"`), paid, ""},
		"an orderId in lower case is the order's":      {all, with(`"orderId":"aaaaaaaaaaaaaaaaaaaaaaaaaa-mug"`), paid, ""},
		"an orderId of the gateway's own is told":      {all, with(`"orderId":"8f14e45f-ceea-467f-9575-9a1f0c7b3c6d"`), paid, "the orderId of the response is not that of the order"},
		"an invoice of another buyer is not shown":     {all, with(`"orderId":"BBBBBBBBBBBBBBBBBBBBBBBBBB-mug"`), nothing, "stops: the response names another order of the shop"},
		"the same one, in lower case":                  {all, with(`"orderId":"bbbbbbbbbbbbbbbbbbbbbbbbbb-mug"`), nothing, "stops: the response names another order of the shop"},
		"a fee on top is the buyer's to see":           {all, with(`"amount":"1.53"`), "1.53 to bc1q 7" + until, "the gateway asks for more than the offer"},
		"less than the offer is what pays the invoice": {all, with(`"amount":"1.47"`), "1.47 to bc1q 7" + until, "the gateway asks for less than the offer"},
		"too great a fee is not asked of the buyer":    {all, with(`"amount":"1.5300001"`), nothing, "stops: /amount differs by more than SHOP_INVOICE_TOLERANCE from the amount of the order"},
		"far less is not the order":                    {all, with(`"amount":"1.4699999"`), nothing, "stops: /amount differs by more than SHOP_INVOICE_TOLERANCE from the amount of the order"},
		"an amount in satoshi is not the order":        {all, with(`"amount":"150000000"`), nothing, "stops: /amount differs by more than SHOP_INVOICE_TOLERANCE from the amount of the order"},
		"without tolerance the amount is exact":        {exact, with(`"amount":"1.50000001"`), nothing, "stops: /amount differs by more than SHOP_INVOICE_TOLERANCE from the amount of the order"},
		"an amount that is a word is none":             {all, with(`"amount":"NaN"`), nothing, "stops: /amount is not an amount"},
		"an amount that is null is none":               {all, with(`"amount":null`), nothing, "stops: /amount is not an amount"},
		"an amount of a thousand digits is none":       {all, with(`"amount":1e999999999`), nothing, "stops: /amount is not an amount"},

		"a deadline without zone is not shown":            {all, with(`"until":"2026-01-02 15:04:05"`), "1.5 to bc1q 7", "/until has no time zone: buyers see no deadline of the gateway"},
		"a deadline without zone, whose zone is declared": {local, with(`"until":"2026-01-02 16:04:05.000"`), paid, ""},
		"a deadline with a space and UTC":                 {all, with(`"until":"2026-01-02 15:04:05 UTC"`), paid, ""},
		"a deadline with a space and an offset":           {local, with(`"until":"2026-01-02 20:34:05+05:30"`), paid, ""},
		"a deadline that is a word is not shown":          {all, with(`"until":"soon"`), "1.5 to bc1q 7", "/until is not a time: buyers see no deadline of the gateway"},
		"a deadline that is an object is not shown":       {all, with(`"until":{}`), "1.5 to bc1q 7", "/until is not a time: buyers see no deadline of the gateway"},
		"a deadline that is missing is not shown":         {all, without("until"), "1.5 to bc1q 7", "/until is not a time: buyers see no deadline of the gateway"},
		"a deadline that is null is none":                 {all, with(`"until":null`), "1.5 to bc1q 7", ""},
		"a deadline before the order is not believed":     {all, with(`"until":"2025-12-31T23:59:59Z"`), "1.5 to bc1q 7", "/until is before the order: buyers see no deadline of the gateway"},
		"all that concludes nothing, at once": {
			all, with(`"until":"2026-01-02 15:04:05","amount":"1.51","orderId":"8"`), "1.51 to bc1q 7",
			"the orderId of the response is not that of the order, the gateway asks for more than the offer, /until has no time zone: buyers see no deadline of the gateway",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{ID: strings.Repeat("A", 26) + "-mug", Coin: "BTC", Network: "Bitcoin", Amount: decimal.RequireFromString("1.5"), Invoice: []byte(test.response)}
			o.MadeAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			p := test.fields.payment(o, "")
			assert.Equal(t, test.want, shown(p))
			assert.Equal(t, test.odd, odd(p))
		})
	}
}

// shown is what a buyer is shown.
func shown(p payment) string {
	switch text := p.Amount.String(); {
	case p.Stopped != nil:
		return p.Address + p.Tag + p.Link
	case p.Link != "":
		return text + " at " + p.Link
	case p.Deadline.IsZero():
		return text + " to " + p.Address + " " + p.Tag
	default:
		return text + " to " + p.Address + " " + p.Tag + " until " + p.Deadline.Format(time.RFC3339)
	}
}

// odd is what the merchant is told.
func odd(p payment) string {
	var all []string
	for _, o := range p.Odd {
		all = append(all, map[bool]string{true: "stops: "}[o.Stops]+o.What)
	}
	return strings.Join(all, ", ")
}

// What stands beside the objects that an address, a tag, an amount or a link is in is about
// them, however deep it is. What stands elsewhere is not.
func TestPayment_beside(t *testing.T) {
	t.Parallel()
	names, err := parseNetworks("Tron=TRC20")
	require.NoError(t, err)
	fields := paymentFields{address: "/pay/to", amount: "/pay/amount", networks: names}
	priced, tagged, linked := fields, fields, paymentFields{link: "/pay/links/0/href"}
	priced.amount, tagged.tag = "/total/value", "/memos/0/text"
	const (
		paid    = "1.5 to T1 "
		coin    = "stops: the response for the coin USDT names "
		network = "stops: the response for the network Tron names "
	)
	for name, test := range map[string]struct {
		fields              paymentFields
		response, want, odd string
	}{
		"a coin and a network beside the address":                 {fields, `{"pay":{"coin":" usdt","network":"TRON","to":"T1","amount":"1.5"}}`, paid, ""},
		"objects with a symbol and a name":                        {fields, `{"pay":{"coin":{"symbol":"USDT","name":"Tether"},"network":{"symbol":"TRX","name":"Tron"},"to":"T1","amount":"1.5"}}`, paid, ""},
		"objects with one of them":                                {fields, `{"pay":{"coin":{"name":"USDT"},"network":{"symbol":"TRC20"},"to":"T1","amount":"1.5"}}`, paid, ""},
		"objects with neither, and null, say nothing":             {fields, `{"pay":{"coin":{"id":1},"network":null,"networkName":[],"to":"T1","amount":"1.5"}}`, paid, ""},
		"a currency of the price":                                 {fields, `{"currency":"EUR","pay":{"coin":"USDT","currency":"usd","to":"T1","amount":"1.5"}}`, paid, ""},
		"a coin of a fee":                                         {fields, `{"pay":{"fee":{"coin":"TRX","currency":"TRX","amount":"1"},"to":"T1","amount":"1.5"},"accepts":[{"network":"Ethereum"}]}`, paid, ""},
		"another network beside the address":                      {fields, `{"pay":{"coin":"USDT","network":"Ethereum (ERC20)","to":"0x1","amount":"1.5"}}`, "", network + "Ethereum (ERC20)"},
		"another networkName below the right one":                 {fields, `{"coinSymbol":"USDT","networkName":"Tron","pay":{"networkName":"Ethereum","to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"another coinSymbol below the right one":                  {fields, `{"coinSymbol":"USDT","networkName":"Tron","pay":{"coinSymbol":"USDC","to":"T1","amount":"1.5"}}`, "", coin + "USDC"},
		"another network beside the object of the address":        {fields, `{"network":"Ethereum","pay":{"network":"Tron","to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"an object with another name":                             {fields, `{"pay":{"network":{"id":2,"name":"Ethereum"},"to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"an object with another name and no symbol":               {fields, `{"pay":{"coin":{"name":"USDC"},"to":"T1","amount":"1.5"}}`, "", coin + "USDC"},
		"an object with another symbol and no name":               {fields, `{"pay":{"network":{"symbol":"ETH"},"to":"0x1","amount":"1.5"}}`, "", network + "ETH"},
		"an object with another symbol":                           {fields, `{"pay":{"coin":{"symbol":"USDC","name":"USDT"},"to":"T1","amount":"1.5"}}`, "", coin + "USDC"},
		"a currency that is another coin":                         {fields, `{"currency":"TRX","pay":{"to":"T1","amount":"1.5"}}`, "", coin + "TRX"},
		"another network around the address":                      {paymentFields{address: "/network/to", amount: "/amount"}, `{"network":{"name":"Ethereum","to":"0x1"},"amount":"1.5"}`, "", network + "Ethereum"},
		"another buyer's order beside the address":                {fields, `{"orderId":"8","pay":{"orderId":"BBBBBBBBBBBBBBBBBBBBBBBBBB-mug","to":"T1","amount":"1.5"}}`, "", "the orderId of the response is not that of the order, stops: the response names another order of the shop"},
		"an orderId of the gateway's own, twice":                  {fields, `{"orderId":"8","pay":{"orderId":"8","to":"T1","amount":"1.5"}}`, paid, "the orderId of the response is not that of the order"},
		"a name in another spelling":                              {fields, `{"pay":{"network_name":"Ethereum","to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"a coin in another spelling":                              {fields, `{"pay":{"Coin-Symbol":"BTC","to":"T1","amount":"1.5"}}`, "", coin + "BTC"},
		"a coin and a network in another spelling, elsewhere":     {fields, `{"of":{"coin_symbol":"USDT","network_name":"Ethereum"},"pay":{"to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"two spellings of which the second is another coin":       {fields, `{"pay":{"coinSymbol":"USDT","coin_symbol":"BTC","to":"T1","amount":"1.5"}}`, "", coin + "BTC"},
		"another chain":                                           {fields, `{"pay":{"chain":"Ethereum","to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"a chain by a name that is declared":                      {fields, `{"pay":{"chain":"TRC20","blockchain":{"name":"Tron"},"to":"T1","amount":"1.5"}}`, paid, ""},
		"another blockchain":                                      {fields, `{"pay":{"blockchain":{"symbol":"ETH"},"to":"0x1","amount":"1.5"}}`, "", network + "ETH"},
		"another token":                                           {fields, `{"pay":{"token":{"symbol":"USDC","name":"USDT"},"to":"T1","amount":"1.5"}}`, "", coin + "USDC"},
		"another asset":                                           {fields, `{"pay":{"asset":"USDC","to":"T1","amount":"1.5"}}`, "", coin + "USDC"},
		"another currency to pay in":                              {fields, `{"pay":{"pay_currency":"BTC","price_currency":"USD","to":"T1","amount":"1.5"}}`, "", coin + "BTC"},
		"the token, the asset and the currency to pay in":         {fields, `{"pay":{"token":"USDT","asset":"usdt","payCurrency":"USDT","to":"T1","amount":"1.5"}}`, paid, ""},
		"another buyer's order_id":                                {fields, `{"pay":{"order_id":"BBBBBBBBBBBBBBBBBBBBBBBBBB-mug","to":"T1","amount":"1.5"}}`, "", "stops: the response names another order of the shop"},
		"an order_id of the gateway's own":                        {fields, `{"pay":{"order_id":"8","to":"T1","amount":"1.5"}}`, paid, "the orderId of the response is not that of the order"},
		"empty texts, blanks and null say nothing":                {fields, `{"coinSymbol":"","networkName":"","orderId":"","currency":"","pay":{"coin":null,"network":" ","chain":{"name":""},"to":"T1","amount":"1.5"}}`, paid, ""},
		"an empty text does not hide another below it":            {fields, `{"networkName":"","of":{"networkName":"Ethereum"},"pay":{"to":"0x1","amount":"1.5"}}`, "", network + "Ethereum"},
		"an empty name does not hide another symbol":              {fields, `{"pay":{"network":{"name":"","symbol":"ETH"},"to":"0x1","amount":"1.5"}}`, "", network + "ETH"},
		"a network that is too long to be shown is not empty":     {fields, `{"pay":{"network":"` + strings.Repeat("Tron", 200) + `","to":"T1","amount":"1.5"}}`, "", network + "a text that cannot be shown"},
		"an amount beside an asset and the currency of the price": {priced, `{"pay":{"to":"T1"},"total":{"value":"1.5","asset":"USDT","currency":"USD"}}`, paid, ""},
		"an amount of another coin":                               {priced, `{"pay":{"to":"T1"},"total":{"value":"1.5","currency":"USDC"}}`, "", coin + "USDC"},
		"an amount in the currency of the price":                  {priced, `{"pay":{"to":"T1"},"total":{"value":"1.5","currency":"USD"}}`, "", "stops: /total/value is in USD and not in USDT"},
		"an amount beside the coin and the currency of the price": {priced, `{"pay":{"to":"T1"},"total":{"value":"1.5","coin":"USDT","currency":"USD"}}`, paid, ""},
		"a tag of another network":                                {tagged, `{"pay":{"to":"T1","amount":"1.5"},"memos":[{"network":"TON","text":"7"}]}`, "", network + "TON"},
		"a tag of the second network is not that of the first":    {tagged, `{"pay":{"to":"T1","amount":"1.5"},"memos":[{"network":"TRC20","text":"7"},{"network":"TON","text":"8"}]}`, paid + "7", ""},
		"a link to pay another coin":                              {linked, `{"pay":{"links":[{"coin":"BTC","href":"https://pay.example/1"}]}}`, "", coin + "BTC"},
		"a link of the second coin is not that of the first":      {linked, `{"pay":{"links":[{"coin":"USDT","href":"https://pay.example/1"},{"coin":"BTC","href":"https://pay.example/2"}]}}`, "1.5 at https://pay.example/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{ID: strings.Repeat("A", 26) + "-mug", Coin: "USDT", Network: "Tron", Amount: decimal.RequireFromString("1.5"), Invoice: []byte(test.response)}
			p := test.fields.payment(o, "")
			assert.Equal(t, test.want, shown(p))
			assert.Equal(t, test.odd, odd(p))
		})
	}
}

// A coin that has needed a tag is not paid without one.
func TestPayment_tagBefore(t *testing.T) {
	t.Parallel()
	fields := paymentFields{address: "/to", tag: "/memo", amount: "/amount"}
	for name, test := range map[string]struct{ response, want, odd string }{
		"it has one":    {`{"to":"r1","amount":"1.5","memo":"8"}`, "1.5 to r1 8", ""},
		"it has none":   {`{"to":"r1","amount":"1.5"}`, "", "stops: the response for XRP on XRP Ledger has no tag, and that for another order has one"},
		"it is null":    {`{"to":"r1","amount":"1.5","memo":null}`, "", "stops: the response for XRP on XRP Ledger has no tag, and that for another order has one"},
		"it is empty":   {`{"to":"r1","amount":"1.5","memo":""}`, "", "stops: the response for XRP on XRP Ledger has no tag, and that for another order has one"},
		"it is a space": {`{"to":"r1","amount":"1.5","memo":" "}`, "", "stops: there is no readable /memo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{Coin: "XRP", Network: "XRP Ledger", Amount: decimal.RequireFromString("1.5"), Invoice: []byte(test.response)}
			p := fields.payment(o, "A")
			assert.Equal(t, test.want, shown(p))
			assert.Equal(t, test.odd, odd(p))
		})
	}
}

func TestPaymentFields_settings(t *testing.T) {
	t.Setenv("SHOP_INVOICE_ADDRESS", "/result/address")
	_, err := fieldsFromEnv(paymentFields{})
	require.ErrorContains(t, err, "SHOP_INVOICE_ADDRESS needs SHOP_INVOICE_AMOUNT")
	t.Setenv("SHOP_INVOICE_AMOUNT", "amount")
	_, err = fieldsFromEnv(paymentFields{})
	require.ErrorContains(t, err, "SHOP_INVOICE_AMOUNT must be a JSON pointer")
	t.Setenv("SHOP_INVOICE_AMOUNT", "/a~1b")
	fields, err := fieldsFromEnv(paymentFields{deadline: "/until"})
	require.NoError(t, err)
	assert.Equal(t, "0.03", fields.tolerance.String())
	assert.Equal(t, []string{"/result/address", "/a~1b", "/until"}, []string{fields.address, fields.amount, fields.deadline})
	for name, values := range map[string][]string{
		"SHOP_INVOICE_TOLERANCE": {"-1", "21", "3%"},
		"SHOP_INVOICE_ZONE":      {"Europe/Atlantis"},
		"SHOP_NETWORK_NAMES":     {"Tron", "Tron=", "=TRC20", "Tron=TRC20,", "Tron=-"},
	} {
		for _, value := range values {
			t.Run(name+" "+value, func(t *testing.T) {
				t.Setenv(name, value)
				_, err := fieldsFromEnv(paymentFields{})
				assert.ErrorContains(t, err, name)
			})
		}
	}
}

// With a response that the settings do not fit, the buyer sees no address and the
// merchant is told.
func TestPayment_notShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gw.SetShape(gatewaytest.InvoiceFlat)
	_, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	res := v.get(server.URL + at)
	assert.Contains(t, res.visibleText(), "The invoice exists, but we cannot show you here where to pay.")
	assert.NotContains(t, res.text, "<img class")
	assert.Equal(t, 404, v.get(server.URL+at+"/qr.png").status)
	assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "1 odd thing at the gateway Some buyers were not shown where to pay.")
	for _, page := range []string{"/admin/odd", "/admin" + at} {
		assert.Contains(t, anna.get(server.URL+page).visibleText(), "there is no readable /address", page)
	}
}
