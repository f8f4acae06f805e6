package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/probe"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A foreign gateway answers every request in one way, and counts the invoices that it was asked for.
type foreign struct {
	status int
	body   string // ORDER stands for the order of the request, KEY for its key
	asked  int
}

func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, _ := io.ReadAll(r.Body)
	f.asked++
	order := regexp.MustCompile(`"orderId":"([^"]+)"`).FindSubmatch(request)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, strings.NewReplacer("ORDER", string(order[1]), "KEY", foreignKey).Replace(f.body))
}

const foreignKey = "the-key-of-a-test-account"

// start serves a foreign gateway until the test ends.
func (f *foreign) start(t *testing.T) *gatewaytest.Server {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return &gatewaytest.Server{URL: server.URL, APIKey: foreignKey}
}

// The answers are written after the documents of real gateways. Each probe asks for one invoice.
func TestProbe_invoice(t *testing.T) {
	const proves = "Give readInvoice to gateway.WithInvoiceDecoder: the client then proves this invoice."
	var functions, calls, want strings.Builder
	for i, tt := range []struct {
		name, args string
		status     int
		body       string
		code       int
		outcome    string // of the client, and with the function
		reads      string // what the function reads; "" for no function
		advice     string
	}{
		{
			"NOWPayments", "", 201, `{"payment_id":"5745459419","payment_status":"waiting","pay_address":"3EZ2uTdVDAMFXTfc6uLDDKR6o8qKBZXVkj",
				"price_amount":1,"price_currency":"usd","pay_amount":0.17070286,"pay_currency":"btc","order_id":"ORDER","purchase_id":"5837122679"}`,
			exitUnknown, "unknown succeeded", "5745459419 3EZ2uTdVDAMFXTfc6uLDDKR6o8qKBZXVkj ", proves,
		},
		{
			"CoinPayments", "", 200, `{"error":"ok","result":{"amount":"1.00000000","address":"3EZ2uTdV","txn_id":"CPLB0","confirms_needed":"10",
				"checkout_url":"https://pay.example/checkout?id=CPLB0","status_url":"https://pay.example/status","qrcode_url":"https://pay.example/qr.png"}}`,
			exitUnknown, "unknown succeeded", "CPLB0 3EZ2uTdV https://pay.example/checkout?id=CPLB0", proves,
		},
		{
			"Plisio", "", 200, `{"status":"success","data":{"txn_id":"6087d4ff","invoice_url":"https://pay.example/invoice/6087d4ff"}}`,
			exitUnknown, "unknown succeeded", "6087d4ff  https://pay.example/invoice/6087d4ff", proves,
		},
		{
			"OxaPay", "", 200, `{"data":{"track_id":184747701,"payment_url":"https://pay.example/184747701","expired_at":1734546589},
				"message":"Operation completed successfully!","error":{},"status":200,"version":"1.0.0"}`,
			exitUnknown, "unknown succeeded", "184747701  https://pay.example/184747701", proves,
		},
		{
			"Cryptomus", "", 200, `{"state":0,"result":{"uuid":"26109ba0","order_id":"ORDER","amount":"1.00","network":"tron","address":"TXguLRFt",
				"url":"https://pay.example/pay/26109ba0","additional_data":"KEY"}}`,
			exitUnknown, "unknown succeeded", "26109ba0 TXguLRFt https://pay.example/pay/26109ba0", proves,
		},
		{
			"BTCPay Server", "", 200, `{"id":"W3sXKq","storeId":"9CiN","checkoutLink":"https://pay.example/i/W3sXKq","status":"New","metadata":{"orderId":"ORDER"}}`,
			exitUnknown, "unknown succeeded", "W3sXKq  https://pay.example/i/W3sXKq", proves,
		},
		{
			"an array with the invoice", "--numbers", 201, `{"message":"Operation was successful.","result":[{"data":[{"invoice-id":"i-1"}]}],"meta":{}}`,
			exitDone, "succeeded succeeded", "i-1  ", "Set the form: gateway.WithInvoiceFormat(gateway.InvoiceFormat{Numbers: true}).",
		},
		{
			"another message", "", 201, `{"message":"Invoice created.","result":{"id":"ORDER","address":"TXguLRFt"},"meta":{}}`,
			exitDiffers, "succeeded succeeded", " TXguLRFt ", "Give readInvoice to gateway.WithInvoiceDecoder, to show a buyer where to pay.",
		},
		{
			"members of the name of the key", "", 200, `{"KEY":{"id":"i-1"}}`,
			exitUnknown, "unknown ", "", "An invoice may exist: look the order up at the gateway before you run this again.",
		},
		{
			"a token alone", "", 200, `{"token":"t-1"}`,
			exitUnknown, "unknown ", "", "An invoice may exist: look the order up at the gateway before you run this again.",
		},
		{
			"a refused amount", "", 400, `{"status":false,"statusCode":400,"code":"INVALID_REQUEST_PARAMS","message":"price_amount must be a number"}`,
			exitRefused, "rejected ", "", "Try amounts as numbers: --numbers.",
		},
		{
			"a refused key", "", 401, `{"state":1,"message":"Invalid api key."}`,
			exitRefused, "rejected ", "", "Check the key, then try the other spelling of its name: --lower-case-key.",
		},
		{
			"a refusal of both forms", "--numbers --lower-case-key", 422, `{"message":"orderId is too long","result":[],"meta":{}}`,
			exitRefused, "rejected ", "", "Both forms are refused: ask the operator.",
		},
		{
			"a failure", "", 500, `{"message":"Server Error"}`,
			exitUnknown, "unknown ", "", "An invoice may exist: look the order up at the gateway before you run this again.",
		},
	} {
		f := &foreign{status: tt.status, body: tt.body}
		got := call(t, f.start(t), "probe --invoice --price 1.00 --yes -o json "+tt.args)
		assert.Equal(t, tt.code, got.code, "%s: %s", tt.name, got.err)
		report := decode[probe.Invoice](t, got.stdout)
		assert.Equal(t, tt.outcome, report.Outcome.String()+" "+report.Decoded, tt.name)
		assert.Contains(t, report.Advice, tt.advice, tt.name)
		assert.Equal(t, 1, f.asked, tt.name)
		assert.Contains(t, got.err, report.Request.OrderID+", price 1.00, amount 1.00", tt.name)
		assert.NotContains(t, got.stdout+got.err, "Idempotent", tt.name)
		assert.Equal(t, tt.reads == "", report.Decoder == "", tt.name)
		if tt.reads != "" {
			functions.WriteString(strings.Replace(report.Decoder, "func readInvoice(", fmt.Sprintf("func read%d(", i), 1))
			fmt.Fprintf(&calls, "\tshow(read%d(json.RawMessage(%q)))\n", i, report.Result)
			want.WriteString(tt.reads + "\n")
		}
	}

	// The functions are Go, and read what they should.
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(`package main

import (
	"encoding/json"
	"fmt"

	"github.com/cryptogw/gateway"
)

`+functions.String()+`
func show(d gateway.InvoiceDetails, err error) {
	if err != nil {
		panic(err)
	}
	fmt.Println(d.ID, d.Address, d.PaymentURL)
}

func main() {
`+calls.String()+"}\n"), 0o600))
	printed, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	require.NoError(t, err, "%s", printed)
	assert.Equal(t, want.String(), string(printed))
}

// Without --yes nothing is sent, and the request is described. A missing key is reported before that.
func TestProbe_invoiceAsks(t *testing.T) {
	gw := standIn(t)
	for line, text := range map[string]string{
		"probe --invoice --price 1.50 --coin USDT --network Tron": ", price 1.50, amount 1.50, coin USDT, network Tron; the key as apiKey, amounts as texts\n" +
			"nothing was sent: add --yes, with the key of a test account\n",
		"probe --invoice --yes": "--invoice needs --price",
		"probe --price 1":       "give --invoice with the flags of an invoice",
		"probe --yes":           "give --invoice with the flags of an invoice",
		"probe --invoice --price 1 --yes --withdrawal w-1": "leave --withdrawal out",
		"probe --invoice --price 0.123456789 --yes":        "price: ",
	} {
		got := call(t, gw, line)
		assert.Equal(t, exitUsage, got.code, line)
		assert.Contains(t, got.err, text, line)
		assert.Empty(t, got.stdout, line)
	}
	assert.Empty(t, gw.Requests())
	for text, wrong := range map[string]*gatewaytest.Server{
		"GATEWAY_BASE_URL: must not hold a user": {URL: "https://anna:hunter2@localhost", APIKey: "secret-key-1"},
		"GATEWAY_API_KEY: has quotes":            {URL: gw.URL, APIKey: `"secret-key-1"`},
	} {
		got := call(t, wrong, "probe --invoice --price 1 --yes")
		assert.Equal(t, outcome{exitUsage, "", got.err}, got)
		assert.Contains(t, got.err, text)
		assert.NotContains(t, got.err, "hunter2")
	}
}

// The stand-in is as documented. A response that is lost is reported, with the exit code of the outcome.
func TestProbe_invoiceStandIn(t *testing.T) {
	gw := standIn(t)
	got := call(t, gw, "probe --invoice --price 1.50 --lower-case-key --numbers --yes")
	assert.Equal(t, exitDone, got.code, got.err)
	assert.Regexp(t, `^succeeded: a result with the message of a success proves the invoice
  status: 201
  message: "Operation was successful."
  result: \{"id":"[^\n]*\}
  with the function below: succeeded
Set the form: gateway.WithInvoiceFormat\(gateway.InvoiceFormat\{LowerCaseKeyName: true, Numbers: true\}\).
Give readInvoice to gateway.WithInvoiceDecoder, to show a buyer where to pay.
// Ask the operator of the gateway whether these members are the right ones.
func readInvoice\(result json.RawMessage\) `, got.stdout)

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	got = call(t, gw, "probe --invoice --price 1.50 --yes")
	assert.Equal(t, exitUnknown, got.code)
	assert.Contains(t, got.stdout, "unknown: nothing proves an invoice, and nothing proves that there is none: ")
	assert.Len(t, gw.Invoices(), 2, "one for each")
	gw.Close()
	assert.Equal(t, exitNotSent, call(t, gw, "probe --invoice --price 1.50 --yes").code)
}
