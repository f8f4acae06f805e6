package gatewaytest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestServer_Requests(t *testing.T) {
	t.Parallel()
	s := start(t)
	mustTry(t, s, "GET", "/api/exchange-rate?a=b%20c", "")
	mustTry(t, s, "GET", "/api/exchange-rate", "", "x-api-key", "wrong")
	get(t, s, "/api/exchange-rate")
	post(s, invoice(s, "o-1", ""))
	post(s, `{"apikey":"wrong"}`)
	mustTry(t, s, "POST", "/api/invoice/create", `{}`, "x-api-key", s.APIKey, "Content-Type", "application/json")
	mustTry(t, s, "GET", "/elsewhere", "")

	type row struct {
		op             gatewaytest.Operation
		method, target string
		body, keyIn    string
		keyOK          bool
		status         int
	}
	rows := []row{}
	for _, r := range s.Requests() {
		assert.False(t, r.At.IsZero())
		assert.Empty(t, r.Fault)
		rows = append(rows, row{r.Operation, r.Method, r.Target, string(r.Body), r.KeyIn, r.KeyOK, r.Status})
	}
	const rates, create = "/gateway/api/exchange-rate", "/gateway/api/invoice/create"
	assert.Equal(t, []row{
		{"exchange_rates", "GET", rates + "?a=b%20c", "", "", false, 200},
		{"exchange_rates", "GET", rates, "", "header", false, 200},
		{"exchange_rates", "GET", rates, "", "header", true, 200},
		{"create_invoice", "POST", create, `{"apiKey":"[REDACTED]","price":"10.50","orderId":"o-1","amount":"0.5"}`, "body", true, 201},
		{"create_invoice", "POST", create, `{"apikey":"[REDACTED]"}`, "body", false, 401},
		{"create_invoice", "POST", create, `{}`, "header", true, 401},
		{"", "GET", "/gateway/elsewhere", "", "", false, 404},
	}, rows)

	mine := s.Requests()
	mine[3].Header.Set("Content-Type", "changed")
	mine[3].Body[0], mine[3].Method = 'x', "changed"
	theirs := s.Requests()[3]
	assert.Equal(t, "POST application/json {", theirs.Method+" "+theirs.Header.Get("Content-Type")+" "+string(theirs.Body[0]), "the journal is a copy")
}

// The key is in nothing that a test might print, wherever it was sent, as it is and as URLs and JSON write it.
func TestServer_redacts_the_key(t *testing.T) {
	t.Parallel()
	const odd = `Te5t+key/17"\of-mine`
	for _, key := range []string{"test-key-5f1d8e0b7a64c932", odd} {
		s := gatewaytest.NewServer(gatewaytest.WithAPIKey(key))
		t.Cleanup(s.Close)
		query, path, upper := url.QueryEscape(key), url.PathEscape(key), strings.ToUpper(key)
		get(t, s, "/api/balance/?apiKey="+query+"&coinSymbol="+query+"#"+query)
		get(t, s, "/api/networks-coins/"+path)
		mustTry(t, s, "GET", "/"+path, key, "Authorization", "Bearer "+key, "Cookie", "k="+key, "X-Other", "a "+upper, "X-Again", query)
		for _, body := range []string{invoice(s, "o", ""), invoice(s, key, ""), invoice(s, "o", "")[:20+len(key)], "apiKey=" + query, key} {
			post(s, body)
		}
		if key != odd { // which is no name of a header, and no method
			mustTry(t, s, key, "/", "", "X-"+key+"-Y", "b")
			last := s.Requests()[len(s.Requests())-1]
			assert.Equal(t, "[REDACTED]", last.Method)
			assert.Equal(t, []string{"b"}, last.Header["X-[REDACTED]-Y"])
		}
		var printed []string
		for _, v := range []any{s, *s, struct{ G gatewaytest.Server }{*s}, s.Requests()} {
			text, err := json.Marshal(v)
			require.NoError(t, err)
			printed = append(printed, string(text))
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
				printed = append(printed, fmt.Sprintf(verb, v))
			}
		}
		for _, r := range s.Requests() {
			printed = append(printed, string(r.Body))
		}
		for _, text := range printed {
			for _, secret := range []string{key, query, path, fmt.Sprintf("%x", key), key[9:]} {
				assert.NotContains(t, strings.ToLower(text), strings.ToLower(secret))
			}
		}
		assert.Equal(t, `gatewaytest.Server{URL:"`+s.URL+`", APIKey:"[REDACTED]"}`, fmt.Sprintf("%#v", s))
		assert.Equal(t, "/gateway/api/balance/?apiKey=[REDACTED]&coinSymbol=[REDACTED]", s.Requests()[0].Target)
		assert.Equal(t, "/gateway/api/networks-coins/[REDACTED]", s.Requests()[1].Target)
		assert.Equal(t, []string{"a [REDACTED]"}, s.Requests()[2].Header["X-Other"])
	}
}

// Any value in the place of a key is redacted too: it may be a real key.
func TestServer_redacts_other_keys(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, tt := range []struct{ body, want string }{
		{`{"apiKey":"secret","price":1}`, `{"apiKey":"[REDACTED]","price":1}`},
		{`{"APIKEY" : "secret" }`, `{"APIKEY" : "[REDACTED]" }`},
		{`{"apiKey":"sec\"ret\\","a":1}`, `{"apiKey":"[REDACTED]","a":1}`},
		{`{"apiKey":12345,"a":1}`, `{"apiKey":"[REDACTED]","a":1}`},
		{`{"apiKey":"secr`, `{"apiKey":"[REDACTED]"`},
		{`{"apiKeys":"kept"}`, `{"apiKeys":"kept"}`},
	} {
		mustTry(t, s, "POST", "/api/invoice/create", tt.body)
		assert.Equal(t, tt.want, string(s.Requests()[i].Body))
	}
	// The headers for credentials, in any case of letters.
	readAll(t, dial(t, s, "GET /gateway/api/exchange-rate HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nx-api-key: sk-live-5f0c\r\n"+
		"authorization: Basic YW5u\r\nauthorization: \r\nproxy-authorization: Basic cHJv\r\ncookie: session=9b2f; theme=dark\r\nX-Other: kept\r\n\r\n"))
	assert.Equal(t, http.Header{
		"X-Api-Key": {"[REDACTED]"}, "Authorization": {"[REDACTED]", "[REDACTED]"}, "Proxy-Authorization": {"[REDACTED]"}, "Cookie": {"[REDACTED]"},
		"X-Other": {"kept"}, "Connection": {"close"},
	}, s.Requests()[6].Header)
}
