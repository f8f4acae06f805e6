package otelgateway_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Prometheus takes the rules, their tests pass and fire each of them, and the guide lists them. The
// series of the tests exist before the first event, and so do the metrics of rules and dashboard
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
	assert.Equal(t, alerts, captures("(?m)^\\| `(\\w+)` \\|", table))
	assert.Subset(t, captures(`alertname: (\w+)\n +exp_alerts:\n`, tests), alerts, "alerts that a test fires")

	inBubble(t, nil, func(t *testing.T, f fixture) {
		registration, err := otelgateway.RegisterPending(&guard{answer: func(context.Context) (sqlguard.PendingSummary, error) {
			return sqlguard.PendingSummary{}, nil
		}}, f.options())
		require.NoError(t, err)
		defer func() { assert.NoError(t, registration.Unregister()) }()
		assert.Subset(t, f.prometheusSeries(t), captures(`series: '(.*)instance="a",job="shop"}'`, tests))

		_, err = f.client.CreateInvoice(t.Context(), order())
		require.NoError(t, err)
		names := captures(`^(\w+)\{`, f.prometheusSeries(t)...)
		assert.Subset(t, names, captures(`\b(gateway_(?:client|orders)_\w+)`, rules, dashboard))
	})
}

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

// prometheusSeries returns the series of the metrics under the names that the exporter for
// Prometheus gives them, up to the labels that Prometheus adds: `name{label="value",`.
func (o *telemetry) prometheusSeries(t *testing.T) (all []string) {
	t.Helper()
	underscored := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	for name, metric := range o.collect(t) {
		name = underscored(name)
		if metric.Unit == "s" {
			name += "_seconds"
		}
		var labels []attribute.Set
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			if data.IsMonotonic {
				name += "_total"
			}
			labels = setsOf(data.DataPoints)
		case metricdata.Gauge[int64]:
			labels = setsOf(data.DataPoints)
		case metricdata.Gauge[float64]:
			labels = setsOf(data.DataPoints)
		case metricdata.Histogram[float64]:
			name += "_bucket"
			for _, point := range data.DataPoints {
				labels = append(labels, point.Attributes)
			}
		default:
			t.Errorf("%s is a %T", name, metric.Data)
		}
		for _, set := range labels {
			var list []string
			for _, label := range set.ToSlice() {
				list = append(list, underscored(string(label.Key))+`="`+label.Value.String()+`",`)
			}
			slices.Sort(list)
			all = append(all, name+"{"+strings.Join(list, ""))
		}
	}
	return all
}

func setsOf[N int64 | float64](points []metricdata.DataPoint[N]) (all []attribute.Set) {
	for _, point := range points {
		all = append(all, point.Attributes)
	}
	return all
}
