package wire

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// BenchmarkInvoice is the price of an invoice over TLS, beside net/http with a connection that it keeps: often,
// and rarely, when the client's connections have been idle for too long.
func BenchmarkInvoice(b *testing.B) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, call.Enveloped(call.InvoiceResult(call.OrderIn(body))))
		}))
		server.EnableHTTP2, server.TLS = proto == "HTTP/2", serverTLS()
		server.StartTLS()
		b.Cleanup(server.Close)
		transport := &http.Transport{TLSClientConfig: clientTLS(), ForceAttemptHTTP2: true}
		client, err := gateway.New(server.URL, canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(b, err)
		orders := 0
		create := func() {
			orders++
			_, err := client.CreateInvoice(b.Context(), call.Order(strconv.Itoa(orders)))
			require.NoError(b, err)
		}
		for name, one := range map[string]func(){
			"often":  create,
			"rarely": func() { client.CloseIdleConnections(); create() },
			"net/http": func() {
				body := fmt.Sprintf(`{"apiKey":%q,"orderId":%q,"price":"10.50","amount":"10.50"}`, canary, call.Target)
				resp, err := (&http.Client{Transport: transport}).Post(server.URL+"/api/invoice/create", "application/json", strings.NewReader(body))
				require.NoError(b, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			},
		} {
			b.Run(proto+"/"+name, func(b *testing.B) {
				one()
				for b.Loop() {
					one()
				}
			})
		}
		client.CloseIdleConnections()
		transport.CloseIdleConnections()
	}
}
