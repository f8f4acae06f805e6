package wire

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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
		_, err = file.Write(certificates().PEM)
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

// certificates are made once: keys take a while.
var certificates = sync.OnceValue(func() *faultserver.Certificates {
	all, err := faultserver.NewCertificates()
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
