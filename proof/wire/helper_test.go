package wire

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// canary is the key of every client here. No text may show it.
const canary = invariant.Key

// TestMain fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	flag.Parse()
	log.SetOutput(io.Discard) // what net/http logs; TestHostile_LogOfNetHTTP checks it
	forget := trustCertificates()
	goleak.VerifyTestMain(m,
		goleak.Cleanup(func(code int) { forget(); os.Exit(code) }),
	)
}

// trustCertificates makes the client's own transport, which has no option for it, trust
// the certificates of the tests. It returns what removes them.
func trustCertificates() (forget func()) {
	file, err := os.CreateTemp("", "*.pem")
	if err == nil {
		_, err = file.Write(certificate().PEM)
		err = errors.Join(err, file.Close(), os.Setenv("SSL_CERT_FILE", file.Name()))
	}
	if err != nil {
		panic(err)
	}
	return func() { _ = os.Remove(file.Name()) }
}

// recordHosts records a violation for each connection to another host.
func recordHosts(server *faultserver.Server) {
	for _, addr := range server.Dialed() {
		if addr != call.Host {
			server.Record.Violation("another host was contacted: %s", addr)
		}
	}
}

const (
	short   = 60 * time.Millisecond // the timeouts that end stalls
	patient = 30 * time.Second      // those that must not be reached
)

// certificate is made once: keys take a while.
var certificate = sync.OnceValue(func() *faultserver.Certificate {
	all, err := faultserver.NewCertificate()
	if err != nil {
		panic(err)
	}
	return all
})

// listening returns a server on TCP. A client that never closes a connection is
// found by its timeout.
func listening(t require.TestingT, handler faultserver.Handler) *faultserver.Server {
	server := faultserver.New(handler)
	server.Timeout = patient
	require.NoError(t, server.Listen(context.Background()))
	return server
}

// inParallel runs every job, so many at a time.
func inParallel(workers int, jobs []func()) {
	queue := make(chan func())
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for job := range queue {
				job()
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	group.Wait()
}

// refused is the documented envelope of an error.
func refused(message string) string {
	return fmt.Sprintf(`{"message":%q,"result":[],"meta":{}}`, message)
}

// An answer is a RoundTripper that responds to every request in the same way, without a
// network: for what responses cost, and what they may be.
type answer struct {
	status int
	body   []byte
}

func (a *answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// answering returns a client that gets this answer, once, and has no order guard.
func answering(t testing.TB, a *answer, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New("https://gateway.example/merchant", canary, append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: a}), gateway.WithOrderGuard(nil),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}),
	}, opts...)...)
	require.NoError(t, err)
	return c
}

// answered returns a client that gets this response.
func answered(t testing.TB, status int, body string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return answering(t, &answer{status, []byte(body)}, opts...)
}

// causeOf is the cause of an unknown outcome, or any other error itself.
func causeOf(err error) error {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return unknown.Cause
	}
	return err
}

// newClient returns a client of server, and the end of its connections.
func newClient(t *testing.T, server *faultserver.Server, timeout time.Duration) (client *gateway.Client, closeIdle func()) {
	transport := &http.Transport{MaxResponseHeaderBytes: 256 << 10, DialContext: server.DialContext}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: timeout, InvoiceTimeout: timeout, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}))
	require.NoError(t, err)
	return client, client.CloseIdleConnections
}

// secureKinds are all kinds of transport, with the certificates of the tests where the
// caller sets them.
func secureKinds() []kind {
	transport := func() *http.Transport {
		return &http.Transport{TLSClientConfig: certificate().Client(), ForceAttemptHTTP2: true, DialContext: dialNarrow}
	}
	return []kind{
		{"the client's own transport", nil, false},
		{"a caller's transport", func() http.RoundTripper { return transport() }, false},
		{"a middleware around a caller's transport", func() http.RoundTripper { return transport() }, true},
	}
}

// narrow is a buffer of a connection that is soon full.
const narrow = 4 << 10

// dialNarrow dials a connection to which little can be written before the peer reads.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(narrow)
	}
	return conn, err
}
