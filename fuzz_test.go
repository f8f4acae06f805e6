package gateway

import (
	"bytes"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// envelopeSeeds are answers, good and bad, for every method.
var envelopeSeeds = []string{
	``, ` `, "\ufeff", `null`, `[]`, `{}`, `"x"`, `{"result":[]}`, `{"result":{}}`, `{"result":null}`, `{"result":"1.5"}`, `{"result":`,
	`{"message":"Operation was successful.","result":[],"meta":{}}`,
	`{"meta":{"\u004CANARY-5f1d/8e0b7a64c932":1},"result":{}}`,
	`{"message":"x-api-key header is required","result":[],"meta":[]}`,
	`{"message":1,"meta":null,"x":[[]],"result":[{}]}`,
	`{"result":[],"result":[]}`, `{"result":[]}x`, `{"result":[]}{}`, "{\"message\":\"\xff\",\"result\":[]}", `{"message":"\ud800"}`,
	`{"result":{"status":"PENDING","destination":"d","amount":"1","fee":2e-3,"coin":"c","network":"n","withdrawRequestId":"w"}}`,
	`{"result":[{"status":"","amount":"1e99"}]}`,
	`{"result":{"id":"w","withdrawalFee":"1.5","swapFee":"0","minWithdraw":"1","maxWithdraw":"2","depositable":true,` +
		`"withdrawable":false,"confirmation":1.0,"arrivalTime":-1,"expirationTime":1e2,"networkId":"n","coinId":"c",` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":null,` +
		`"network":{"id":"n","name":"","isActive":true},"coin":{"id":"c","name":"","symbol":"S","precision":6,"minAmount":"0.1","isActive":false}}}`,
	`{"result":[{"symbol":"BTC","usd":"1","eur":2},{"coin":{"symbol":"ETH"},"USD":1,"EUR":2}]}`,
	`{"result":{"BTC":{"usd":1,"eur":2}}}`, `{"result":{"usd":{"BTC":1},"eur":{"BTC":2}}}`, `{"result":{"usd":1}}`,
	`{"result":{"USDT":"1","BTC":{"available":2,"network":{"name":"n"}}}}`, `{"result":{"balance":{}}}`, `{"result":[1,"2",{"amount":3}]}`,
	`{"result":{"` + testKey + `":1},"meta":{"\u0043ANARY-5f1d\/8e0b7a64c932":"` + testKey + `"},"message":"` + testKey + `"}`,
	strings.Repeat(`{"result":`, 50) + strings.Repeat("[", 50),
}

// A readResult opens an answer with the reader of one method, and says whether
// there is a result and what is wrong.
type readResult struct {
	name string
	open func(d *decoder) (found bool, e envelope, refused bool)
}

func readWith[T any](name string, read reader[T], isNil func(T) bool) readResult {
	return readResult{name, func(d *decoder) (bool, envelope, bool) {
		result, e, refused := open(d, read)
		return !isNil(result), e, refused
	}}
}

func nilSlice[T any](all []T) bool  { return all == nil }
func nilPointer[T any](one *T) bool { return one == nil }

func readersOfAll() []readResult {
	return []readResult{
		readWith("many", many(coinNetworkFields), nilSlice[CoinNetwork]),
		readWith("one", one(coinNetworkFields), nilPointer[CoinNetwork]),
		readWith("oneOrMany", oneOrMany(coinNetworkFields), nilSlice[CoinNetwork]),
		readWith("withdrawal", one(withdrawalFields), nilPointer[Withdrawal]),
		readWith("rates", readRates, nilPointer[ExchangeRates]),
		readWith("balance", BalanceQuery{CoinSymbol: "USDT"}.read, nilPointer[Balance]),
		readWith("invoice", (&InvoiceRequest{OrderID: "A-17"}).read, nilPointer[Invoice]),
	}
}

// Whatever a service answers, a reader gives a result or says what is wrong,
// does not panic, keeps what it keeps within bounds and without the key, and
// reads the same however the answer is cut into pieces.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range envelopeSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, r := range readersOfAll() {
			d := newTestDecoder(bytes.NewReader(answer))
			found, e, refused := r.open(d)
			checkEnvelope(t, r.name, d, e, answer)
			if d.err == nil && !refused && !found {
				t.Errorf("%s: neither a result nor an error", r.name)
			}
			if d.err == nil && !jsontext.Value(answer).IsValid() {
				t.Errorf("%s: accepted what is not JSON", r.name)
			}
			again := newTestDecoder(iotest.OneByteReader(bytes.NewReader(answer)))
			_, _, refusedAgain := r.open(again)
			if (again.err == nil) != (d.err == nil) || refused != refusedAgain {
				t.Errorf("%s: byte by byte: %v, at once: %v", r.name, again.err, d.err)
			}
		}
		d := newTestDecoder(bytes.NewReader(answer))
		checkEnvelope(t, "refusal", d, openRefusal(d), answer)
	})
}

func newTestDecoder(answer io.Reader) *decoder {
	d := &decoder{}
	d.reset(answer, newRedactor(newSecret(testKey)))
	return d
}

func checkEnvelope(t *testing.T, name string, d *decoder, e envelope, answer []byte) {
	t.Helper()
	if len(e.message) > maxMessage || !utf8.ValidString(e.message) {
		t.Errorf("%s: a message of %d bytes", name, len(e.message))
	}
	if e.meta != nil && !e.meta.IsValid() {
		t.Errorf("%s: a meta that is not JSON: %s", name, e.meta)
	}
	e.cut(answer)
	kept := e.message + string(e.meta)
	if d.err != nil {
		kept += d.err.pointer + d.err.err.Error()
	}
	if strings.Contains(kept, testKey) {
		t.Errorf("%s: the key is kept: %s", name, kept)
	}
}

// jsonNumber is the grammar of an amount, said a second time.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]+))?$`)

// An amount is a number of JSON within bounds, and means what the decimal
// package says it means; all else is refused.
func FuzzAmount(f *testing.F) {
	for _, seed := range []string{
		"", "0", "-0", "1", "10.50", "-10.50", "0.000000000000000001", "1e-7", "1E+7", "1e64", "1e65", "1e-65", "1e1000000000", "1e00001",
		"999999999999999999", "9999999999999999999", "-9223372036854775809", "01", ".5", "5.", "+1", "-", "1e", "1e+", "1.e1", "NaN", "Infinity",
		" 1", "1 ", "1,5", "0x1", "१", "1_0", "1\x00", strings.Repeat("9", 128), strings.Repeat("9", 129), "0." + strings.Repeat("0", 126),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseAmount([]byte(text))
		if accepted := isAmount(text); accepted != (err == nil) {
			t.Fatalf("%q: accepted %v, error %v", text, accepted, err)
		}
		if err != nil {
			return
		}
		want, err := decimal.NewFromString(text)
		if err != nil {
			t.Fatalf("%q: accepted, and not by the decimal package: %v", text, err)
		}
		if got.Exponent() != want.Exponent() || got.Coefficient().Cmp(want.Coefficient()) != 0 {
			t.Fatalf("%q: %v·10^%d, not %v·10^%d", text, got.Coefficient(), got.Exponent(), want.Coefficient(), want.Exponent())
		}
	})
}

func isAmount(text string) bool {
	parts := jsonNumber.FindStringSubmatch(text)
	if parts == nil || len(text) > maxAmountText {
		return false
	}
	if parts[4] == "" {
		return true
	}
	exponent, ok := new(big.Int).SetString(parts[4], 10)
	return ok && exponent.CmpAbs(big.NewInt(maxAmountExponent)) <= 0
}

// What may be sent is written in plain digits, and reads back as it was.
func FuzzPlainText(f *testing.F) {
	for _, seed := range []struct {
		coefficient string
		exponent    int32
	}{
		{"1", 5},
		{"1050", -2},
		{"1", -30},
		{"1", -31},
		{"1", 63},
		{"1", 64},
		{"0", 0},
		{"-5", 0},
		{"1", 1 << 30},
		{"1", -1 << 31},
		{strings.Repeat("9", 64), 0},
		{strings.Repeat("9", 64), -30},
		{strings.Repeat("9", 65), -1},
		{"18446744073709551616", -18},
	} {
		f.Add(seed.coefficient, seed.exponent)
	}
	f.Fuzz(func(t *testing.T, digits string, exponent int32) {
		coefficient, ok := new(big.Int).SetString(digits[:min(len(digits), 200)], 10)
		if !ok {
			return
		}
		amount := decimal.NewFromBigInt(coefficient, exponent)
		if checkAmount(amount) != "" {
			return
		}
		text := plainText(amount)
		if !jsonNumber.MatchString(text) || strings.ContainsAny(text, "eE-") || len(text) > maxSentDigits+2 {
			t.Fatalf("%v·10^%d is written as %q", coefficient, exponent, text)
		}
		back, err := parseAmount([]byte(text))
		if err != nil || !back.Equal(amount) || back.Exponent() != min(exponent, 0) {
			t.Fatalf("%v·10^%d is written as %q, read as %v, %v", coefficient, exponent, text, back, err)
		}
	})
}

// Whatever is accepted for a path stays one segment of it, below the prefix of
// the base URL, and arrives as it was; the same holds for a query.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"", ".", "..", "...", "a", "USDT", "Binance Smart Chain (BEP20)", "../balance", "a/b", "/", "a?x=1", "a#f", "a&b", `a\b`, "a;v=1",
		"%2e%2e", "%", "a+b", "a=b", "é", "世", "\x00", "\r\n", "\x7f", "\u0085", "\u200d", "\xff", " a", "a ", "\u2028", "\u00a0", strings.Repeat("a", 257),
	} {
		f.Add(seed)
	}
	parsed, reason := parseBase("https://gateway.example/p%20q/é", false)
	if reason != "" {
		f.Fatal(reason)
	}
	b := newBase(parsed)
	const prefix = "/p%20q/%C3%A9"
	f.Fuzz(func(t *testing.T, text string) {
		checkPath(t, b, prefix+"/api/networks-coins/", text)
		checkQuery(t, b, prefix+"/api/balance/?coinSymbol=", text)
	})
}

func checkPath(t *testing.T, b base, before, text string) {
	t.Helper()
	var target url.URL
	name, reason := b.aim(&target, &call{route: "/api/networks-coins/{id}", args: [2]string{text}})
	if reason != "" {
		if name != "id" || checkPathText(text) != reason {
			t.Fatalf("%q: %s %s", text, name, reason)
		}
		return
	}
	segment, found := strings.CutPrefix(target.RequestURI(), before)
	if !found || segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "/?#\\ ") {
		t.Fatalf("%q is asked for as %q", text, target.RequestURI())
	}
	if back, err := url.PathUnescape(segment); err != nil || back != text {
		t.Fatalf("%q arrives as %q, %v", text, back, err)
	}
	if again, err := url.Parse(target.String()); err != nil || again.RequestURI() != target.RequestURI() || again.Host != target.Host {
		t.Fatalf("%q: %v is read as %v, %v", text, target, again, err)
	}
}

func checkQuery(t *testing.T, b base, before, text string) {
	t.Helper()
	var target url.URL
	_, reason := b.aim(&target, &call{route: "/api/balance/", query: []param{{"coinSymbol", text}, {"networkName", "n"}}})
	if reason != "" || text == "" {
		return
	}
	if !strings.HasPrefix(target.RequestURI(), before) || !strings.HasSuffix(target.RequestURI(), "&networkName=n") {
		t.Fatalf("%q is asked for as %q", text, target.RequestURI())
	}
	got, err := url.ParseQuery(target.RawQuery)
	if err != nil || len(got) != 2 || len(got["coinSymbol"]) != 1 || got.Get("coinSymbol") != text {
		t.Fatalf("%q arrives as %v, %v", text, got, err)
	}
}

// What a service asks to wait is never negative, whatever it writes.
func FuzzRetryAfter(f *testing.F) {
	const now = "Tue, 02 Jan 2024 03:04:05 GMT"
	for _, seed := range []string{
		"", "0", "1", "-1", "1.5", "abc", "86400", "9223372036", "9223372037", "9223372036854775807", "99999999999999999999", " 1", "1 ",
		now, "Tue, 02 Jan 2024 03:05:05 GMT", "Mon, 01 Jan 1900 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Tuesday, 02-Jan-24 03:05:05 GMT",
		"Tue Jan  2 03:05:05 2024", "٣",
	} {
		f.Add(seed, now)
		f.Add(seed, "")
		f.Add(now, seed)
	}
	f.Fuzz(func(t *testing.T, asked, date string) {
		got := retryAfter(http.Header{"Retry-After": {asked}, "Date": {date}})
		if got < 0 {
			t.Fatalf("%q at %q asks to wait %v", asked, date, got)
		}
		if seconds, err := strconv.ParseUint(asked, 10, 33); err == nil && got != time.Duration(seconds)*time.Second {
			t.Fatalf("%q asks to wait %v", asked, got)
		}
	})
}

// The key survives in nothing that the client keeps.
func FuzzRedact(f *testing.F) {
	for _, key := range []string{testKey, `back\slash-key`, `quote"key-77`, "aaaaaaaa", "12345678", `\\\\\\\\`, "abababab"} {
		quoted, _ := jsontext.AppendQuote(nil, key)
		for _, text := range []string{
			key, key + key, "a" + key[1:] + key, string(quoted), `{"a":[` + string(quoted) + `],` + string(quoted) + `:1}`,
			`"` + spelledInUnicode(key) + `"`, `\` + key, key[:7] + `\u00`, "<html>" + key[:len(key)-1], `{"a":12345678}`,
		} {
			f.Add(key, text, 20)
			f.Add(key, text, len(text)/2)
		}
	}
	f.Fuzz(func(t *testing.T, key, text string, limit int) {
		// A key that could arise from the mark itself, or is too short, is not
		// looked for.
		if checkKey(key) != "" || len(key) < shortestSearched || strings.ContainsAny(key, "[]") || strings.Contains(redacted, key) {
			return
		}
		s := newRedactor(newSecret(key))
		for _, kept := range []string{
			string(s.snippet([]byte(text), min(max(limit, 0), len(text)))), string(s.snippet([]byte(text), len(text))), s.text(text),
		} {
			if strings.Contains(kept, key) {
				t.Fatalf("%q holds %q", kept, key)
			}
		}
		checkValue(t, s, key, text)
	})
}

// checkValue asserts of a JSON value that it is JSON afterwards, and that no
// text in it is the key however it is escaped.
func checkValue(t *testing.T, s redactor, key, text string) {
	t.Helper()
	if !jsontext.Value(text).IsValid() {
		return
	}
	clean := s.value(jsontext.Value(text))
	if !clean.IsValid() {
		t.Fatalf("%s became %s", text, clean)
	}
	for dec := jsontext.NewDecoder(bytes.NewReader(clean)); ; {
		token, err := dec.ReadToken()
		if err != nil {
			return
		}
		if token.Kind() == '"' && strings.Contains(token.String(), key) {
			t.Fatalf("%s holds %q", clean, key)
		}
	}
}
