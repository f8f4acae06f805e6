package bench

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// memory responds to every request from memory.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: req,
	}, nil
}

func inMemory(p Peer) Read {
	t := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}} // HTTP/1 only
	t.RegisterProtocol("https", memory{p.Response})
	return p.New("https://service.example", &http.Client{Transport: t})
}

func overLoopback(tb testing.TB, p Peer) Read {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.Response)
	}))
	tb.Cleanup(server.Close)
	pool := &http.Transport{}
	tb.Cleanup(pool.CloseIdleConnections)
	return p.New(server.URL, &http.Client{Transport: pool})
}

func TestPeers(t *testing.T) {
	for _, p := range Peers() {
		for name, read := range map[string]Read{"in memory": inMemory(p), "over the loopback": overLoopback(t, p)} {
			t.Run(p.Name+" "+name, func(t *testing.T) {
				if got, err := read(t.Context()); err != nil || got != p.Want {
					t.Errorf("read %q, %v; want %q", got, err, p.Want)
				}
			})
		}
	}
}

func BenchmarkPeers(b *testing.B) {
	for _, p := range Peers() {
		b.Run("memory/"+p.Name, func(b *testing.B) { measure(b, inMemory(p)) })
		b.Run("loopback/"+p.Name, func(b *testing.B) { measure(b, overLoopback(b, p)) })
	}
}

// measure also reports the processor time, including that of the garbage collector
// and the server, which other programs on the machine affect little.
func measure(b *testing.B, read Read) {
	b.Helper()
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if _, err := read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
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
