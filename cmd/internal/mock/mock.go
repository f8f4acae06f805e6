// Package mock serves a stand-in of package gatewaytest, with an HTTP API for tests beside it, so that programs in
// any language can be tested against it.
package mock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// Key is the API key that a mock accepts.
const Key = "test-key" // #nosec G101 -- for tests

// A Mock serves the gateway under /gateway and the API for tests under /_mock. It is safe for concurrent use.
type Mock struct {
	api http.Handler

	mu     sync.Mutex
	server *gatewaytest.Server // replaced by a reset
}

// New returns a mock.
func New() *Mock {
	m := &Mock{server: newServer()}
	m.api = m.newAPI()
	return m
}

func newServer() *gatewaytest.Server { return gatewaytest.NewMemoryServer(gatewaytest.WithAPIKey(Key)) }

// ServeHTTP implements [http.Handler].
func (m *Mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_mock/") {
		m.api.ServeHTTP(w, r)
		return
	}
	m.current().Handler().ServeHTTP(w, r)
}

// Close ends the requests that wait.
func (m *Mock) Close() { m.current().Close() }

func (m *Mock) current() *gatewaytest.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// reset replaces the stand-in by a new one, and ends the requests that wait.
func (m *Mock) reset() {
	m.mu.Lock()
	old := m.server
	m.server = newServer()
	m.mu.Unlock()
	old.Close()
}

// try calls a function of gatewaytest and returns its panic about a wrong argument as an error.
func try(do func()) (err error) {
	defer func() {
		switch said := recover().(type) {
		case nil:
		case string:
			err = errors.New(strings.TrimPrefix(said, "gatewaytest: "))
		default:
			panic(said)
		}
	}()
	do()
	return nil
}

func (m *Mock) newAPI() http.Handler {
	mux := http.NewServeMux()
	for route, handle := range map[string]func(*http.Request) (any, error){
		"GET /_mock/requests":            func(*http.Request) (any, error) { return journal(m.current().Requests()), nil },
		"GET /_mock/invoices":            m.invoices,
		"GET /_mock/withdrawals":         func(*http.Request) (any, error) { return m.current().Withdrawals(), nil },
		"PUT /_mock/withdrawals/{id}":    reads(m.setStatus),
		"PUT /_mock/results/{operation}": m.setResult,
		"PUT /_mock/rates/{symbol}":      reads(m.setRate),
		"PUT /_mock/repeated-orders":     reads(m.setRepeatedOrders),
		"PUT /_mock/rate-limit":          reads(m.setRateLimit),
		"POST /_mock/clock":              reads(m.advance),
		"POST /_mock/faults":             reads(m.injectFault),
		"DELETE /_mock/faults":           func(*http.Request) (any, error) { m.current().ClearFaults(); return nil, nil },
		"POST /_mock/reset":              func(*http.Request) (any, error) { m.reset(); return nil, nil },
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			result, err := handle(r)
			switch {
			case err != nil:
				http.Error(w, err.Error(), http.StatusBadRequest)
			case result == nil:
				w.WriteHeader(http.StatusNoContent)
			default:
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(result) // fails if the client has gone
			}
		})
	}
	return mux
}

// reads returns a handler that decodes the body of a request, a JSON object, for another one.
func reads[T any](handle func(*http.Request, T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var body T
		from := json.NewDecoder(r.Body)
		from.DisallowUnknownFields()
		if err := from.Decode(&body); err != nil {
			return nil, err
		}
		return handle(r, body)
	}
}

// A request is a [gatewaytest.Request] as JSON. It has no key.
type request struct {
	Operation gatewaytest.Operation `json:"operation"`
	Method    string                `json:"method"`
	Target    string                `json:"target"`
	Header    http.Header           `json:"header"`
	Body      string                `json:"body"`
	KeyIn     string                `json:"keyIn"`
	KeyOK     bool                  `json:"keyOk"`
	Status    int                   `json:"status"`
	Fault     string                `json:"fault"`
	At        time.Time             `json:"at"`
}

func journal(requests []gatewaytest.Request) []request {
	all := []request{}
	for _, r := range requests {
		all = append(all, request{r.Operation, r.Method, r.Target, r.Header, string(r.Body), r.KeyIn, r.KeyOK, r.Status, r.Fault, r.At})
	}
	return all
}

// invoices lists the invoices, or with ?orderId= those of one order.
func (m *Mock) invoices(r *http.Request) (any, error) {
	invoices := m.current().Invoices()
	if query := r.URL.Query(); query.Has("orderId") {
		invoices = m.current().InvoicesFor(query.Get("orderId"))
	}
	return append([]gatewaytest.Invoice{}, invoices...), nil // not null
}

func (m *Mock) setStatus(r *http.Request, change struct{ Status string }) (any, error) {
	return nil, m.current().SetWithdrawalStatus(r.PathValue("id"), change.Status)
}

// setResult sets the result of an operation to the body of the request.
func (m *Mock) setResult(r *http.Request) (any, error) {
	result, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return nil, try(func() { m.current().SetResult(gatewaytest.Operation(r.PathValue("operation")), string(result)) })
}

// setRate sets the rates of a coin; without usd and eur it has none.
func (m *Mock) setRate(r *http.Request, rate struct{ USD, EUR string }) (any, error) {
	m.current().SetRate(r.PathValue("symbol"), rate.USD, rate.EUR)
	return nil, nil
}

func (m *Mock) setRepeatedOrders(_ *http.Request, set struct{ Kind gatewaytest.RepeatedOrders }) (any, error) {
	return nil, try(func() { m.current().SetRepeatedOrders(set.Kind) })
}

func (m *Mock) setRateLimit(_ *http.Request, limit struct{ Requests, Seconds int64 }) (any, error) {
	return nil, try(func() { m.current().SetRateLimit(int(limit.Requests), seconds(limit.Seconds)) })
}

// advance moves the clock forward, and returns its time.
func (m *Mock) advance(_ *http.Request, by struct{ Seconds int64 }) (any, error) {
	server := m.current()
	err := try(func() { server.Advance(seconds(by.Seconds)) })
	return map[string]time.Time{"now": server.Now()}, err
}

// seconds returns so many seconds, but at most what a duration can be.
func seconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}

// An injection is a fault for the next requests of an operation.
type injection struct {
	Operation  gatewaytest.Operation `json:"operation"`
	Times      int                   `json:"times"` // the number of requests, or -1 for all; 1 if it is absent
	Fault      string                `json:"fault"`
	Status     int                   `json:"status"`
	Message    string                `json:"message"`
	Form       gatewaytest.ErrorForm `json:"form"`
	Location   string                `json:"location"`
	Bytes      int64                 `json:"bytes"`
	Interval   int64                 `json:"interval"` // in milliseconds
	RetryAfter string                `json:"retryAfter"`
}

// Faults lists the faults, each with its members, for people.
const Faults = `commit-then-drop; reset; stall; refuse (status, message); refuse-as (form, status, message);
page (status); empty (status); redirect (status, location); truncate (bytes); huge-body (bytes);
slow-body (interval, in milliseconds)`

func (m *Mock) injectFault(_ *http.Request, i injection) (any, error) {
	newFault := map[string]func() gatewaytest.Fault{
		"commit-then-drop": gatewaytest.FaultCommitThenDrop,
		"reset":            gatewaytest.FaultReset,
		"stall":            gatewaytest.FaultStall,
		"refuse":           func() gatewaytest.Fault { return gatewaytest.FaultRefuse(i.Status, i.Message) },
		"refuse-as":        func() gatewaytest.Fault { return gatewaytest.FaultRefuseAs(i.Form, i.Status, i.Message) },
		"page":             func() gatewaytest.Fault { return gatewaytest.FaultPage(i.Status) },
		"empty":            func() gatewaytest.Fault { return gatewaytest.FaultEmpty(i.Status) },
		"redirect":         func() gatewaytest.Fault { return gatewaytest.FaultRedirect(i.Status, i.Location) },
		"truncate":         func() gatewaytest.Fault { return gatewaytest.FaultTruncate(int(i.Bytes)) },
		"huge-body":        func() gatewaytest.Fault { return gatewaytest.FaultHugeBody(i.Bytes) },
		"slow-body": func() gatewaytest.Fault {
			return gatewaytest.FaultSlowBody(time.Duration(i.Interval) * time.Millisecond)
		},
	}[i.Fault]
	if newFault == nil {
		return nil, fmt.Errorf("there is no fault %q, but %s", i.Fault, Faults)
	}
	return nil, try(func() { m.current().InjectFault(i.Operation, cmp.Or(i.Times, 1), newFault().RetryAfter(i.RetryAfter)) })
}
