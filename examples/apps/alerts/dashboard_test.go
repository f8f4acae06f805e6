package prometheus_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

type dashboard struct {
	Title      string
	Schema     int `json:"schemaVersion"`
	Templating struct {
		List []struct{ Name, Type, Query any }
	}
	Panels []panel
}

// A panel is one of the dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	Grid                     struct{ X, Y, W, H int } `json:"gridPos"`
	Fields                   struct {
		Defaults struct{ Unit string }
	} `json:"fieldConfig"`
	Targets []struct{ Expr, RefID string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	check(json.Unmarshal([]byte(text(t, "dashboard.json")), &d))
	return d
}

// The dashboard is one that Grafana imports: it has the data source as a variable, and its
// panels are described and do not overlap.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.Schema < 39 || len(d.Panels) < 10 || d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Query != "prometheus" {
		t.Errorf("%q, version %d, %d panels, %v", d.Title, d.Schema, len(d.Panels), d.Templating.List)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || p.Fields.Defaults.Unit == "" || p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" || ids[p.ID] {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		if p.Grid.W < 1 || p.Grid.H < 1 || p.Grid.X < 0 || p.Grid.X+p.Grid.W > 24 {
			t.Errorf("%s: %+v", p.Title, p.Grid)
		}
		for cell := range p.Grid.W * p.Grid.H {
			at := [2]int{p.Grid.X + cell%p.Grid.W, p.Grid.Y + cell/p.Grid.W}
			if other := taken[at]; other != "" {
				t.Fatalf("%s overlaps %s", p.Title, other)
			}
			taken[at] = p.Title
		}
	}
}

// The panels show what the exporter prints, and all of it.
func TestDashboard_metrics(t *testing.T) {
	_, after := scrapes(t)
	shown := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			found := selectors(target.Expr)
			if len(found) == 0 {
				t.Errorf("%s: there is no metric in %s", p.Title, target.Expr)
			}
			for _, s := range found {
				shown[s.name] = true
				if _, count := after.sum(s); count == 0 {
					t.Errorf("%s: the exporter prints no %s", p.Title, s.text)
				}
			}
			checkGroups(t, p.Title, target.Expr, after)
		}
	}
	for _, one := range after {
		name := strings.NewReplacer("_seconds_sum", "_seconds_bucket", "_seconds_count", "_seconds_bucket").Replace(one.name)
		if !shown[name] && strings.HasPrefix(name, "gateway_") {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The expressions of the dashboard are those of Prometheus. PROMTOOL is the path of its tool.
func TestDashboard_expressions(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		t.Skip("PROMTOOL is not set: see ci.sh")
	}
	var records []map[string]string
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h").Replace(target.Expr)
			records = append(records, map[string]string{"record": "panel:" + strconv.Itoa(p.ID) + ":" + target.RefID, "expr": expr})
		}
	}
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	check(err)
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	check(os.WriteFile(path, content, 0o600))
	if output, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
