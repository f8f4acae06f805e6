package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A fault is a row of the table of faults: how the trouble is made, and what a
// read and a create-invoice must come to. A kind of "" means that the row says
// nothing of that kind of call.
type fault struct {
	name        string
	real        bool // on sockets and by the real clock; else in a bubble, where time is free
	set         func(s *stage)
	read, write verdict
}

// The kinds of verdict.
const (
	works     = "works"
	transport = "*TransportError"
	api       = "*APIError"
	decode    = "*DecodeError"
	notSent   = "not sent"
	unknown   = "unknown"
	rejected  = "rejected"
)

// A verdict is what a call comes to.
type verdict struct {
	kind     string
	phase    string  // of the *TransportError, which for an unknown outcome is the cause; "" for any
	is       []error // what the error matches, or for an unknown outcome the cause
	status   int     // of the error; 0 for none
	attempts int     // how often the error says that the call was tried; 0 is not looked at
	sends    int     // how many requests the server read to the end; any for not to be looked at
	commits  int     // how many invoices the server created
	dials    int     // how many connections were asked for; 0 is not looked at
	text     string  // what the text of the error has in it
	body     string  // what is kept of the answer to an unknown outcome; "" is not looked at
}

const anyNumber = -1

// play runs a table of faults, each as a read and as a create-invoice.
func play(t *testing.T, faults []fault) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, `^row \d+: `, f.name)
			f.run(t, "read", f.read, false)
			f.run(t, "create-invoice", f.write, true)
		})
	}
}

func (f fault) run(t *testing.T, name string, v verdict, write bool) {
	if v.kind == "" {
		return
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		act := func(t *testing.T) {
			s := newStage(t, f.deadline())
			s.write = write
			f.set(s)
			s.assert(v)
		}
		if f.real {
			act(t)
			return
		}
		synctest.Test(t, act)
	})
}

// act makes the call that the stage is about.
func (s *stage) act() (any, error) {
	if s.write {
		return s.client().CreateInvoice(s.ctx, order("A-17"))
	}
	return s.client().Withdrawal(s.ctx, requestID)
}

// A stage is where a fault is played: a client on one side, a script on the
// other, and a ledger of what crossed from one to the other.
type stage struct {
	*testing.T
	write     bool
	url       string
	transport *http.Transport
	tripper   http.RoundTripper // instead of transport, when set
	policy    gateway.RetryPolicy
	options   []gateway.Option
	ctx       context.Context
	cancel    context.CancelFunc
	made      *gateway.Client
	secrets   []string // what must not be in the text of an error, beside the key

	mu      sync.Mutex
	dialed  []string
	bodies  int // bytes of bodies that reached the server
	sends   int // requests that the server read to the end
	commits int
	open    sync.WaitGroup // connections of the client, and the scripts at their other ends
	struck  chan struct{}  // closed when the call is over
}

// deadline is the net under every fault: no verdict depends on it, and no call
// may come near it. In a bubble, where time is free, it is further away.
func (f fault) deadline() time.Duration {
	if f.real {
		return time.Minute
	}
	return 24 * time.Hour
}

func newStage(t *testing.T, deadline time.Duration) *stage {
	s := &stage{
		T: t, url: "http://localhost", transport: &http.Transport{},
		policy: gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond},
		struck: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithTimeout(t.Context(), deadline)
	t.Cleanup(s.cancel)
	return s
}

// client returns the one client of the stage.
func (s *stage) client() *gateway.Client {
	if s.made == nil {
		var tripper http.RoundTripper = s.transport
		if s.tripper != nil {
			tripper = s.tripper
		}
		options := append([]gateway.Option{
			gateway.WithHTTPClient(&http.Client{Transport: tripper}), gateway.WithRetry(s.policy),
		}, s.options...)
		s.made = newClient(s, s.url+prefix, options...)
	}
	return s.made
}

// dial makes connect the way to the server. Every connection is counted when
// it is asked for, and waited for at the end.
func (s *stage) dial(connect func(ctx context.Context, number int) (net.Conn, error)) {
	s.transport.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
		s.mu.Lock()
		s.dialed = append(s.dialed, addr)
		number := len(s.dialed)
		s.mu.Unlock()
		conn, err := connect(ctx, number)
		if err != nil {
			return nil, err
		}
		s.open.Add(1)
		return &line{Conn: conn, closed: sync.OnceFunc(s.open.Done)}, nil
	}
}

// A line is a connection that says when it is closed.
type line struct {
	net.Conn
	closed func()
}

func (l *line) Close() error {
	defer l.closed()
	return l.Conn.Close()
}

// A script is the server's side of a connection, whose number counts from 1.
// The connection is closed when it returns.
type script func(number int, conn net.Conn)

// piped plays a script behind connections that exist in memory only.
func (s *stage) piped(play script) {
	s.dial(func(_ context.Context, number int) (net.Conn, error) {
		near, far := net.Pipe()
		s.open.Go(func() {
			defer func() { _ = far.Close() }()
			play(number, far)
		})
		return near, nil
	})
}

// socketed plays a script behind TCP connections of this machine.
func (s *stage) socketed(play script) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	s.Cleanup(func() { _ = listener.Close() })
	var dialing sync.Mutex // so that the connection that is accepted is the one just dialed
	s.dial(func(ctx context.Context, number int) (net.Conn, error) {
		dialing.Lock()
		defer dialing.Unlock()
		near, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		s.open.Go(func() {
			defer func() { _ = far.Close() }()
			play(number, far)
		})
		return near, nil
	})
}

// receive reads one request to its end and enters it in the ledger. It reports
// whether there was a whole one.
func (s *stage) receive(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, req.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies += int(n)
	if err == nil {
		s.sends++
	}
	return err == nil
}

// commit enters an invoice in the ledger.
func (s *stage) commit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write {
		s.commits++
	}
}

// good is the body of the answer that the call understands.
func (s *stage) good() string {
	if s.write {
		return enveloped(invoiceJSON)
	}
	return enveloped(withdrawalJSON)
}

// respond commits and answers well, in one piece.
func (s *stage) respond(conn io.Writer) {
	s.commit()
	_, _ = io.WriteString(conn, plainAnswer(200, s.good()))
}

// serve answers every request of a connection well.
func (s *stage) serve(conn net.Conn) {
	for r := bufio.NewReader(conn); s.receive(r); {
		s.respond(conn)
	}
}

// plainAnswer is an answer as it stands on the wire. Each header is a line.
func plainAnswer(status int, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, header := range append(headers, fmt.Sprint("Content-Length: ", len(body))) {
		b.WriteString(header + "\r\n")
	}
	return b.String() + "\r\n" + body
}

// handled plays a handler of net/http, which sees a request after it was read.
func (s *stage) handled(handler http.HandlerFunc) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	server := &http.Server{ErrorLog: quiet(), Handler: s.entered(handler)}
	s.open.Go(func() { _ = server.Serve(listener) })
	s.open.Go(func() {
		<-s.struck
		_ = server.Close()
	})
	s.dial(func(ctx context.Context, _ int) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	})
}

// entered enters a request in the ledger before handler sees it.
func (s *stage) entered(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		s.bodies += int(n)
		if err == nil {
			s.sends++
		}
		s.mu.Unlock()
		handler(w, r)
	})
}

// each is a script that reads one request and then does what then says.
func (s *stage) each(then func(number int, conn net.Conn)) script {
	return func(number int, conn net.Conn) {
		if s.receive(bufio.NewReader(conn)) {
			then(number, conn)
		}
	}
}

// hold keeps a connection until its other end is closed.
func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// reset ends a TCP connection with RST.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// assert makes the call and holds it against the verdict and against what is
// true of every fault.
func (s *stage) assert(v verdict) {
	result, err := s.act()
	s.strike()
	assertInvariants(s, result, err)
	for _, secret := range s.secrets {
		assert.NotContains(s, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
	}
	s.assertLedger(v, err)
	s.assertPlaces()
	if err == nil {
		s.assertData(result)
	}
	assertBounded(s, err)
	if !assert.Equal(s, v.kind, kindOf(err, s.write), "the kind of %v", err) {
		return
	}
	assertDetails(s, v, err)
}

// strike ends the stage: when it returns every connection is closed and every
// script is over.
func (s *stage) strike() {
	close(s.struck)
	s.transport.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		s.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		assert.Fail(s, "a connection was left open")
	}
}

func (s *stage) assertLedger(v verdict, err error) {
	if v.sends != anyNumber {
		assert.Equal(s, v.sends, s.sends, "requests that the server read to the end")
	}
	if v.dials != 0 {
		assert.Len(s, s.dialed, v.dials, "connections that were asked for")
	}
	assert.LessOrEqual(s, s.commits, 1, "an invoice was created twice")
	if !s.write {
		return
	}
	assert.Equal(s, v.commits, s.commits, "invoices that the server created")
	assert.LessOrEqual(s, s.sends, 1, "an invoice was sent twice")
	switch outcome := gateway.OutcomeOf(err); {
	case outcome == gateway.OutcomeNotSent:
		assert.Zero(s, s.bodies, "bytes of an invoice that was said not to be sent")
	case outcome == gateway.OutcomeSucceeded:
		assert.Equal(s, 1, s.commits, "a success is one invoice")
	case s.commits > 0:
		assert.Equal(s, gateway.OutcomeUnknown, outcome, "an invoice exists")
	}
}

// assertPlaces asserts that nothing but the gateway was connected to.
func (s *stage) assertPlaces() {
	for _, addr := range s.dialed {
		host, _, err := net.SplitHostPort(addr)
		assert.NoError(s, err)
		assert.Contains(s, []string{"localhost", "127.0.0.1", "gateway.test", "proxy.test"}, host, "another host was contacted")
	}
}

func (s *stage) assertData(result any) {
	switch got := result.(type) {
	case *gateway.Withdrawal:
		assert.Equal(s, "25.000001", got.Amount.String())
		assert.Equal(s, requestID, got.WithdrawRequestID)
	case *gateway.Invoice:
		assert.Equal(s, "A-17", got.OrderID)
		assert.JSONEq(s, invoiceJSON, string(got.Raw))
	default:
		assert.Fail(s, "a result of an unknown type", "%T", result)
	}
}

// assertBounded asserts that no error keeps more of an answer than it says.
func assertBounded(t testing.TB, err error) {
	t.Helper()
	const most = 8 << 10
	var (
		answer  *gateway.APIError
		corrupt *gateway.DecodeError
		lost    *gateway.OutcomeUnknownError
	)
	if errors.As(err, &lost) {
		assert.LessOrEqual(t, len(lost.Body), most)
		err = lost.Cause
	}
	if errors.As(err, &answer) {
		assert.LessOrEqual(t, len(answer.Body), most)
	}
	if errors.As(err, &corrupt) {
		assert.LessOrEqual(t, len(corrupt.Body), most)
	}
}

// kindOf names what a call came to.
func kindOf(err error, write bool) string {
	if err == nil {
		return works
	}
	if write {
		return gateway.OutcomeOf(err).String()
	}
	return strings.Replace(fmt.Sprintf("%T", err), "gateway.", "", 1)
}

// assertDetails asserts what the verdict says of the error.
func assertDetails(t testing.TB, v verdict, err error) {
	t.Helper()
	if err == nil {
		return
	}
	assert.Contains(t, err.Error(), v.text)
	var lost *gateway.OutcomeUnknownError
	if errors.As(err, &lost) {
		assertUnknown(t, v, lost)
		err = lost.Cause
	}
	for _, target := range v.is {
		assert.ErrorIs(t, err, target)
	}
	var failure *gateway.TransportError
	if errors.As(err, &failure) {
		if v.phase != "" {
			assert.Equal(t, v.phase, failure.Phase, "the phase of %v", err)
		}
		if v.attempts != 0 {
			assert.Equal(t, v.attempts, failure.Attempts, "the attempts of %v", err)
		}
		assert.Equal(t, v.status, failure.LastStatus, "the last status of %v", err)
	}
	var refusal *gateway.APIError
	if errors.As(err, &refusal) {
		assert.Equal(t, v.status, refusal.StatusCode)
		if v.attempts != 0 {
			assert.Equal(t, v.attempts, refusal.Attempts)
		}
	}
}

// assertUnknown asserts what keeps anybody from repeating the call.
func assertUnknown(t testing.TB, v verdict, lost *gateway.OutcomeUnknownError) {
	t.Helper()
	assert.Equal(t, v.status, lost.StatusCode)
	if v.body != "" {
		assert.Equal(t, v.body, string(lost.Body))
	}
	assert.Equal(t, "A-17", lost.OrderID)
	assert.False(t, lost.SentAt.IsZero())
	assert.False(t, gateway.SafeToRetry(lost))
	for _, target := range []error{context.Canceled, context.DeadlineExceeded, gateway.ErrTimeout, gateway.ErrNotSent} {
		assert.NotErrorIs(t, lost, target)
	}
	var network net.Error
	if assert.ErrorAs(t, lost, &network) {
		assert.False(t, network.Timeout())
	}
}

// TestMain fails when the tests leave a goroutine of the client behind: one
// that runs its code, or one that keeps a connection for it.
func TestMain(m *testing.M) {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	left := leftBehind()
	for ; len(left) > 0 && ctx.Err() == nil; left = leftBehind() {
		runtime.Gosched()
	}
	cancel()
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", bytes.Join(left, []byte("\n\n")))
		code = max(code, 1)
	}
	os.Exit(code)
}

func leftBehind() [][]byte {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left [][]byte
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		ours := bytes.Contains(stack, []byte("cryptogw/gateway.")) || bytes.Contains(stack, []byte("net/http.(*persistConn)")) ||
			bytes.Contains(stack, []byte("net/http.(*http2")) || bytes.Contains(stack, []byte("net/http/internal/http2"))
		if ours && !bytes.Contains(stack, []byte("TestMain")) {
			left = append(left, bytes.Clone(stack))
		}
	}
	return left
}
