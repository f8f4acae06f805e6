package alerts_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// A sample is one line of a scrape.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

type samples []sample

var (
	lineForm  = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	labelForm = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)
	nameForm  = regexp.MustCompile(`\b(gateway_\w+)(?:\{([^}]*)\})?`)
)

func parse(t *testing.T, page string) (all samples) {
	t.Helper()
	for line := range strings.Lines(page) {
		parts := lineForm.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(parts[3], 64)
		check(err)
		s := sample{parts[1], map[string]string{}, value}
		for _, l := range labelForm.FindAllStringSubmatch(parts[2], -1) {
			s.labels[l[1]] = l[3]
		}
		all = append(all, s)
	}
	return all
}

// A selector is a metric in an expression, with what its labels must be. One with
// alternatives is as many selectors.
type selector struct {
	text, name string
	matchers   [][]string // each of text, label, operator and value
}

func selectors(expr string) (all []selector) {
	expr = labelGroup.ReplaceAllString(expr, "(")
	for _, found := range nameForm.FindAllStringSubmatch(expr, -1) {
		of := []selector{{text: found[0], name: found[1]}}
		for _, m := range labelForm.FindAllStringSubmatch(found[2], -1) {
			if m[1] == "job" || m[1] == "instance" { // those of Prometheus
				continue
			}
			var each []selector
			for _, s := range of {
				for value := range strings.SplitSeq(m[3], "|") {
					s.matchers = append(slices.Clip(s.matchers), []string{m[0], m[1], m[2], value})
					each = append(each, s)
					s.matchers = s.matchers[:len(s.matchers)-1]
				}
			}
			of = each
		}
		all = append(all, of...)
	}
	return all
}

// labelGroup is by (…), whose labels look like metrics.
var labelGroup = regexp.MustCompile(`\b(?:by|without|on|ignoring) ?\([^)]*\) ?\(`)

// sum returns the sum of what a selector selects, and how many series these are.
func (all samples) sum(s selector) (sum float64, count int) {
	for _, one := range all {
		matches := one.name == s.name
		for _, m := range s.matchers {
			matches = matches && (one.labels[m[1]] == m[3]) == (m[2] != "!=")
		}
		if matches {
			sum, count = sum+one.value, count+1
		}
	}
	return sum, count
}

// scrapes returns what a healthy process has, and others to which everything has happened
// that a rule is for.
func scrapes(t *testing.T) (healthy, after samples) {
	t.Helper()
	failed, without := newProcess(t), newProcess(t)
	failed.happen()
	check(without.db.Close())
	return newProcess(t).scrape(), append(failed.scrape(), without.scrape()...)
}

// labelsOf are the names of the labels in a scrape, and those of Prometheus.
func (all samples) labelsOf() map[string]bool {
	names := map[string]bool{"job": true, "instance": true, "le": true}
	for _, one := range all {
		for name := range one.labels {
			names[name] = true
		}
	}
	return names
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	check(yaml.UnmarshalStrict([]byte(text(t, "rules.yml")), &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// What a rule selects exists before the first event, and what happens changes it: counters
// and gauges are 0 before, and are not after it.
func TestRules_select(t *testing.T) {
	healthy, after := scrapes(t)
	for _, r := range rules(t) {
		found := selectors(r.Expr)
		if len(found) == 0 {
			t.Errorf("%s: there is no metric in %s", r.Alert, r.Expr)
		}
		for _, s := range found {
			before, count := healthy.sum(s)
			since, _ := after.sum(s)
			switch {
			case count == 0:
				t.Errorf("%s: nothing is %s before the first event", r.Alert, s.text)
			case s.name == "gateway_orders_readable":
				if _, failed := after.sum(selector{name: "gateway_orders_readable"}); before != 1 || since != 1 || failed != 2 {
					t.Errorf("%s: %v before, %v of %d processes after", r.Alert, before, since, failed)
				}
			case before != 0 || since <= 0:
				t.Errorf("%s: %s %v is %v before, and %v after", r.Alert, s.text, s.matchers, before, since)
			}
		}
		checkGroups(t, r.Alert, r.Expr, after)
	}
}

// checkGroups checks that series are grouped by labels that there are.
func checkGroups(t *testing.T, name, expr string, all samples) {
	t.Helper()
	for _, group := range regexp.MustCompile(`\bby \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			if !all.labelsOf()[strings.TrimSpace(label)] {
				t.Errorf("%s: no series has the label %s", name, label)
			}
		}
	}
}

// The tests of the rules have series that the exporter prints, each rule is fired by one of
// them and not by another.
func TestRules_tests(t *testing.T) {
	var file struct {
		Tests []struct {
			Name   string
			Series []struct{ Series string } `yaml:"input_series"`
			Alerts []struct {
				Name     string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	check(yaml.Unmarshal([]byte(text(t, "rules_test.yml")), &file))
	healthy, _ := scrapes(t)
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, s := range test.Series {
			of := parse(t, s.Series+" 0")
			if len(of) != 1 {
				t.Fatalf("%s: %s", test.Name, s.Series)
			}
			delete(of[0].labels, "job")
			delete(of[0].labels, "instance")
			if !slices.ContainsFunc(healthy, func(one sample) bool {
				return one.name == of[0].name && maps.Equal(one.labels, of[0].labels)
			}) {
				t.Errorf("%s: the exporter does not print %s", test.Name, s.Series)
			}
		}
		for _, a := range test.Alerts {
			if len(a.Expected) > 0 {
				fires[a.Name] = true
			} else if test.Name == "all is well" {
				rests[a.Name] = true
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !rests[r.Alert] {
			t.Errorf("%s: fires %v, rests %v", r.Alert, fires[r.Alert], rests[r.Alert])
		}
	}
}

// The table of the guide has each rule.
func TestRules_table(t *testing.T) {
	_, table, _ := strings.Cut(text(t, "../../../docs/production.md"), "\n## Alarms\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var listed, alerts []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		listed = append(listed, row[1])
	}
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
	}
	if !slices.Equal(listed, alerts) {
		t.Errorf("the guide has %q, the rules are %q", listed, alerts)
	}
}

// Prometheus takes the rules, and their tests pass.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "rules.yml")
	promtool(t, "test", "rules", "rules_test.yml")
}

// promtool runs the tool of Prometheus, which PROMTOOL may name.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("PROMTOOL"), "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %q: %v (it is in Debian's package prometheus)\n%s", args, err, output)
	}
}

// The panels of the dashboard show what the exporter prints.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	check(json.Unmarshal([]byte(text(t, "dashboard.json")), &dashboard))
	if len(dashboard.Panels) == 0 {
		t.Error("there are no panels")
	}
	_, after := scrapes(t)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			found := selectors(target.Expr)
			if len(found) == 0 {
				t.Errorf("%s: there is no metric in %s", p.Title, target.Expr)
			}
			for _, s := range found {
				if _, count := after.sum(s); count == 0 {
					t.Errorf("%s: the exporter prints no %s", p.Title, s.text)
				}
			}
			checkGroups(t, p.Title, target.Expr, after)
		}
	}
}

// The guide of otelgateway shows code of the example.
func TestGuide(t *testing.T) {
	_, rest, _ := strings.Cut(text(t, "../../../otelgateway/README.md"), "## Prometheus")
	_, rest, begun := strings.Cut(rest, "```go\n")
	code, _, ended := strings.Cut(rest, "```\n")
	if !begun || !ended || !strings.Contains(text(t, "example_test.go"), code) {
		t.Errorf("this is not code of the example:\n%s", code)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	check(err)
	return string(content)
}
