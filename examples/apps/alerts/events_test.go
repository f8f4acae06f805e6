package alerts_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/shopspring/decimal"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A process has a client, of which every part can be made to fail.
type process struct {
	*sqlguard.Guard
	t       *testing.T
	gw      *gatewaytest.Server
	db      *sql.DB
	client  *gateway.Client
	metrics http.Handler

	key                string
	beginFails, refuse error // of the guard and of the transport
	endFails           error
	body               string // of the next response, instead of its own
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, gw: gatewaytest.NewServer()}
	t.Cleanup(p.gw.Close)
	p.key = p.gw.APIKey
	var err error
	p.db, err = sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "orders.db")+"?_pragma=busy_timeout(10000)")
	check(err)
	t.Cleanup(func() { _ = p.db.Close() })
	p.Guard, err = sqlguard.New(p.db)
	check(err)
	check(p.Migrate(t.Context()))
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	check(err)
	options := otelgateway.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))}
	_, err = otelgateway.RegisterPending(p, options)
	check(err)
	p.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	p.client, err = gateway.New(p.gw.URL, "", otelgateway.New(options), gateway.WithOrderGuard(p),
		gateway.WithAPIKeySource(func(context.Context) (string, error) { return p.key, nil }), gateway.WithMaxResponseBytes(64<<10),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithCircuitBreaker(5), gateway.WithHTTPClient(&http.Client{Transport: p}))
	check(err)
	return p
}

// Begin implements [gateway.OrderGuard].
func (p *process) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	if p.beginFails != nil {
		return gateway.Lease{}, p.beginFails
	}
	return p.Guard.Begin(ctx, o)
}

// End implements [gateway.OrderGuard].
func (p *process) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	has, err := p.Guard.End(ctx, o, r)
	return has, errors.Join(p.endFails, err)
}

// PendingSummary is that of an hour later, so that the age of an order is above 0.
func (p *process) PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error) {
	s, err := p.Guard.PendingSummary(ctx)
	if !s.Oldest.IsZero() {
		s.Oldest = s.Oldest.Add(-3600e9)
	}
	return s, err
}

// RoundTrip implements [http.RoundTripper].
func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	resp, err := p.gw.Transport().RoundTrip(req)
	if err == nil && p.body != "" {
		_ = resp.Body.Close()
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewBufferString(p.body)), int64(len(p.body))
		resp.Header.Del("Content-Length")
	}
	return resp, err
}

func (p *process) invoice(orderID, amount string) error {
	value := decimal.RequireFromString(amount)
	_, err := p.client.CreateInvoice(p.t.Context(), gateway.InvoiceRequest{OrderID: orderID, Price: value, Amount: value, CoinSymbol: "USDT"})
	return err
}

// happen makes everything happen that a rule is for.
func (p *process) happen() {
	ctx := p.t.Context()
	must := func(want error, err error) {
		p.t.Helper()
		if err == nil || want != nil && !errors.Is(err, want) {
			p.t.Errorf("%v, want %v", err, want)
		}
	}
	mustBe := func(want gateway.Outcome, err error) {
		p.t.Helper()
		if got := gateway.OutcomeOf(err); got != want {
			p.t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	check(p.invoice("created", "10"))
	mustBe(gateway.OutcomeConflict, p.invoice("created", "11"))
	p.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "No"))
	must(nil, p.invoice("rejected", "10"))
	p.beginFails = errors.New("no database")
	must(p.beginFails, p.invoice("unasked", "10"))
	p.beginFails, p.endFails = nil, errors.New("no database")
	check(p.invoice("unrecorded", "10"))
	p.endFails, p.key = nil, ""
	must(gateway.ErrMissingAPIKey, p.invoice("without a key", "10"))
	p.key = "another-key-0123456789"
	_, err := p.client.Balance(ctx, gateway.BalanceQuery{})
	must(gateway.ErrUnauthorized, err)
	p.key, p.refuse = p.gw.APIKey, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	mustBe(gateway.OutcomeNotSent, p.invoice("without a connection", "10"))
	p.refuse = nil
	for _, read := range []struct {
		fault gatewaytest.Fault
		want  error
	}{
		{gatewaytest.FaultRefuse(429, "Slower"), gateway.ErrRateLimited},
		{gatewaytest.FaultEdit("/result", "{"), nil},
		{gatewaytest.FaultHugeBody(1 << 20), gateway.ErrResponseTooLarge},
	} {
		p.gw.InjectFault(gatewaytest.OpExchangeRates, 1, read.fault)
		_, err := p.client.ExchangeRates(ctx)
		must(read.want, err)
	}
	withdrawal := p.gw.Withdrawals()[0].WithdrawRequestID
	p.body = `{"message":"Operation was successful.","result":{"withdrawRequestId":"another","destination":"T1","amount":"1","fee":"0",` +
		`"coin":"USDT","network":"TRC20","status":"PENDING"},"meta":{}}`
	_, err = p.client.Withdrawal(ctx, withdrawal)
	must(gateway.ErrResponseMismatch, err)
	p.body = ""
	p.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
	_, err = p.client.Withdrawal(ctx, withdrawal)
	check(err)
	p.gw.InjectFault(gatewaytest.OpCreateInvoice, 5, gatewaytest.FaultPage(502))
	for i := range 5 {
		mustBe(gateway.OutcomeUnknown, p.invoice("unknown "+strconv.Itoa(i), "10"))
	}
	must(gateway.ErrCircuitOpen, p.invoice("held back", "10"))
}

// scrape returns what Prometheus gets.
func (p *process) scrape() samples {
	p.t.Helper()
	page := httptest.NewRecorder()
	p.metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return parse(p.t, page.Body.String())
}
