// Package alerts_test shows the metrics of a client in Prometheus: alert rules in
// rules.yml, their tests in rules_test.yml, and dashboard.json, which Grafana imports. The
// README of otelgateway describes it.
package alerts_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/shopspring/decimal"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	_ "modernc.org/sqlite"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// observed returns a client and the handler of its metrics, for /metrics.
func observed(baseURL, apiKey string, guard *sqlguard.Guard) (*gateway.Client, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	options := otelgateway.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))}
	if _, err := otelgateway.RegisterPending(guard, options); err != nil {
		return nil, nil, err
	}
	client, err := gateway.New(baseURL, apiKey, otelgateway.New(options), gateway.WithOrderGuard(guard))
	return client, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

// One invoice is created, the response to another is lost, and a withdrawal has a status that is not
// documented.
func Example() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	directory, err := os.MkdirTemp("", "")
	check(err)
	defer func() { check(os.RemoveAll(directory)) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(directory, "orders.db")+"?_pragma=busy_timeout(10000)")
	check(err)
	defer func() { check(db.Close()) }()
	guard, err := sqlguard.New(db)
	check(err)
	check(guard.Migrate(context.Background()))
	client, metrics, err := observed(gw.URL, gw.APIKey, guard)
	check(err)

	_, _ = client.Withdrawal(context.Background(), gw.Withdrawals()[0].WithdrawRequestID)
	ten := decimal.RequireFromString("10")
	for _, order := range []string{"A-17", "A-18"} {
		_, _ = client.CreateInvoice(context.Background(), gateway.InvoiceRequest{OrderID: order, Price: ten, Amount: ten, CoinSymbol: "USDT"})
	}

	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "gateway_") && !strings.Contains(line, "_seconds") && !strings.HasSuffix(line, " 0") {
			fmt.Println(line)
		}
	}
	// Unordered output:
	// gateway_client_call_attempts_total{error_type="wait",gateway_operation="create_invoice",http_request_method="POST",url_template="/api/invoice/create"} 1
	// gateway_client_call_attempts_total{gateway_operation="create_invoice",http_request_method="POST",http_response_status_code="201",url_template="/api/invoice/create"} 1
	// gateway_client_call_attempts_total{gateway_operation="withdrawal",http_request_method="GET",http_response_status_code="201",url_template="/api/withdrawal/inquiry/{withdrawRequestId}"} 1
	// gateway_client_call_drift_total{gateway_drift_kind="unknown_status",gateway_operation="withdrawal"} 1
	// gateway_client_call_failures_total{error_type="wait",gateway_operation="create_invoice"} 1
	// gateway_client_call_outcomes_total{gateway_operation="create_invoice",gateway_outcome="succeeded"} 1
	// gateway_client_call_outcomes_total{gateway_operation="create_invoice",gateway_outcome="unknown"} 1
	// gateway_client_call_outcomes_total{gateway_operation="withdrawal",gateway_outcome="succeeded"} 1
	// gateway_orders_pending 1
	// gateway_orders_readable 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
