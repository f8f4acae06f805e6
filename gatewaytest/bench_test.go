package gatewaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
)

// An invoice, beside its floor: net/http that reads the request and writes a response of
// the same size.
func BenchmarkServer_invoice(b *testing.B) {
	s := gatewaytest.NewServer()
	defer s.Close()
	reply := []byte(post(s, invoice(s, "order-0", "")).body)
	floor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(reply)
	}))
	defer floor.Close()
	for name, url := range map[string]string{"server": s.URL + "/api/invoice/create", "floor": floor.URL} {
		b.Run(name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					resp, err := client.Post(url, "application/json", strings.NewReader(invoice(s, fmt.Sprintf("order-%d", i), "")))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		})
	}
}
