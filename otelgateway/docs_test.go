package otelgateway_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// captures returns what the group of an expression matches in texts.
func captures(expression string, texts ...string) (all []string) {
	for _, text := range texts {
		for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
	}
	return all
}

// withPending runs a test of a client and of the gauges of a guard, "shop", without pending orders.
func withPending(t *testing.T, test func(*testing.T, fixture)) {
	inBubble(t, func(t *testing.T, f fixture) {
		f.telemetry = newTelemetry("https://gateway.example")
		f.Guard = "shop"
		f.client = f.connect(t, otelgateway.New(f.Options))
		_, err := otelgateway.RegisterPending(pending(0, 0), f.Options)
		require.NoError(t, err)
		test(t, f)
	})
}

// The tables of the README name every metric with its kind and unit, and every attribute.
func TestREADME(t *testing.T) {
	readme := fileText(t, "README.md")
	withPending(t, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultReset())
		require.NoError(t, f.gw.SetWithdrawalStatus(f.gw.Withdrawals()[0].WithdrawRequestID, "ON_HOLD"))
		require.NoError(t, f.inquire(t.Context()))
		for name, metric := range f.metrics(t) {
			kind := "[a-z -]+"
			if metric.Unit != "" {
				kind += ", " + regexp.QuoteMeta(metric.Unit)
			}
			assert.Regexp(t, "\\| `"+regexp.QuoteMeta(name)+"` \\| "+kind+"[;: ]", readme)
			assert.Regexp(t, `^[A-Z].*\.$`, metric.Description, name)
		}
		for _, span := range f.exporter.GetSpans() {
			names := slices.Collect(maps.Keys(attributesOf(span)))
			assert.Subset(t, names, []string{"server.address", "server.port", "gateway.guard"})
			for _, name := range names {
				assert.Contains(t, readme, "`"+name+"`")
			}
		}
	})
}

// Prometheus takes the rules, their tests pass and fire each of them, and the guide lists them. The
// series of the tests exist with 0 before the first event, and so do the metrics of rules and dashboard
// after one call.
func TestAlerts(t *testing.T) {
	for _, args := range []string{"check rules --lint=all --lint-fatal alerts/rules.yml", "test rules alerts/rules_test.yml"} {
		output, err := exec.CommandContext(t.Context(), "promtool", strings.Fields(args)...).CombinedOutput()
		assert.NoError(t, err, "promtool %s (.ci/install installs it)\n%s", args, output)
	}
	rules, tests, dashboard := fileText(t, "alerts/rules.yml"), fileText(t, "alerts/rules_test.yml"), fileText(t, "alerts/dashboard.json")

	alerts := captures(`(?m)^ +- alert: (\w+)$`, rules)
	require.NotEmpty(t, alerts)
	_, table, _ := strings.Cut(fileText(t, "../docs/production.md"), "\n## Alarms\n")
	assert.Equal(t, alerts, captures("(?m)^- `(\\w+)`: ", table))
	fired := captures(`alertname: (\w+)\n +exp_alerts:\n`, tests)
	fired = append(fired, captures(`labels: '.*alertname="(\w+)"`, tests)...)
	assert.Subset(t, fired, alerts, "alerts that a test fires")
	for _, sum := range captures(`"expr": "(sum\(max.*)"`, dashboard) {
		assert.Contains(t, tests, strings.ReplaceAll(sum, `{job=~\"$job\"}`, ""))
	}

	withPending(t, func(t *testing.T, f fixture) {
		series := f.series(t)
		for _, begun := range captures(`series: '(.*),instance="[ab]",job="shop"}'`, tests) {
			value, ok := series[regexp.MustCompile(`(north|south)"`).ReplaceAllString(begun, `shop"`)+`,server_address="gateway.example",server_port="443"}`]
			assert.True(t, ok && (value == 0 || strings.HasPrefix(begun, "gateway_orders_readable{")), begun)
		}
		_, err := f.client.CreateInvoice(t.Context(), everycall.Order("A-17"))
		require.NoError(t, err)
		names := captures(`^(\w+)\{`, slices.Collect(maps.Keys(f.series(t)))...)
		assert.Subset(t, names, captures(`\b(gateway_(?:client|orders)_\w+)`, rules, dashboard))
	})
}
