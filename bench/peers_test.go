package bench

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/cryptogw/gateway/bench/trust"
)

func newServer(tb testing.TB, p Peer) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.Response)
	}))
	tb.Cleanup(server.Close)
	return server
}

func overLoopback(tb testing.TB, p Peer, s Setting) Read {
	tb.Helper()
	server := newServer(tb, p)
	server.Start()
	pool := &http.Transport{}
	tb.Cleanup(pool.CloseIdleConnections)
	return p.New(server.URL, &http.Client{Transport: pool}, s.Deadline)
}

// overHTTP2 uses the transport that a library has by itself: this client its own, the others that of net/http.
func overHTTP2(tb testing.TB, p Peer, s Setting) Read {
	tb.Helper()
	server := newServer(tb, p)
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(http.DefaultClient.CloseIdleConnections)
	return p.New(server.URL, &http.Client{}, s.Deadline)
}

// TestMain lets the process trust the certificate that all servers of httptest have.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(nil)
	forget, err := trust.PEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	server.Close()
	if err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	forget()
	os.Exit(code)
}

func TestPeers(t *testing.T) {
	for _, p := range Peers() {
		for _, s := range Settings() {
			for name, read := range map[string]Read{
				"in memory": InMemory(p, s), "over the loopback": overLoopback(t, p, s), "over HTTP/2": overHTTP2(t, p, s),
			} {
				t.Run(p.Name+" "+s.Name+" "+name, func(t *testing.T) {
					if got, err := read(t.Context()); err != nil || got != p.Want {
						t.Errorf("read %q, %v; want %q", got, err, p.Want)
					}
				})
			}
		}
	}
}

func BenchmarkPeers(b *testing.B) {
	for _, s := range Settings() {
		for _, p := range Peers() {
			b.Run(s.Name+"/memory/"+p.Name, func(b *testing.B) { measure(b, 1, InMemory(p, s)) })
			b.Run(s.Name+"/loopback/"+p.Name, func(b *testing.B) { measure(b, 1, overLoopback(b, p, s)) })
			b.Run(s.Name+"/http2/"+p.Name, func(b *testing.B) { measure(b, 16, overHTTP2(b, p, s)) })
		}
	}
}

// measure also reports the processor time, including that of the garbage collector
// and the server, which other programs on the machine affect little.
func measure(b *testing.B, callers int, read Read) {
	b.Helper()
	b.ReportAllocs()
	if _, err := read(b.Context()); err != nil { // which connects
		b.Fatal(err)
	}
	before := processorTime(b)
	b.ResetTimer()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for range (b.N + caller) / callers {
				if _, err := read(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
