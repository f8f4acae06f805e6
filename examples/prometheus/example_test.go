// Package prometheus_test shows the metrics of a client in Prometheus. It is a separate
// module, so that users of otelgateway do not depend on Prometheus.
package prometheus_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
)

// observed returns a client and the handler of its metrics, for /metrics.
func observed(baseURL, apiKey string) (*gateway.Client, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	client, err := gateway.New(baseURL, apiKey, otelgateway.New(otelgateway.Options{MeterProvider: meters}))
	return client, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

func Example() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultDriftStatus())
	client, metrics, err := observed(gw.URL, gw.APIKey)
	if err != nil {
		panic(err)
	}
	_, _ = client.Withdrawal(context.Background(), gw.Withdrawals()[0].WithdrawRequestID)
	_, _ = client.Withdrawal(context.Background(), "none such")

	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "gateway_") && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
			fmt.Println(line)
		}
	}
	// Unordered output:
	// gateway_client_call_attempts_total{gateway_operation="withdrawal",http_request_method="GET",http_response_status_code="201",url_template="/api/withdrawal/inquiry/{withdrawRequestId}"} 1
	// gateway_client_call_attempts_total{error_type="404",gateway_operation="withdrawal",http_request_method="GET",http_response_status_code="404",url_template="/api/withdrawal/inquiry/{withdrawRequestId}"} 1
	// gateway_client_call_drift_total{gateway_drift_kind="unknown_status",gateway_operation="withdrawal"} 1
	// gateway_client_call_duration_seconds_count{gateway_operation="withdrawal"} 1
	// gateway_client_call_duration_seconds_count{error_type="404",gateway_operation="withdrawal"} 1
	// gateway_client_call_in_flight{gateway_operation="withdrawal"} 0
	// gateway_client_call_outcomes_total{gateway_operation="withdrawal",gateway_outcome="not_sent"} 1
	// gateway_client_call_outcomes_total{gateway_operation="withdrawal",gateway_outcome="succeeded"} 1
}
