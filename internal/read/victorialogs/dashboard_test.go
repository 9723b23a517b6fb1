package victorialogs

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestDashboard: the expressions of the dashboard and of the alerts can be parsed, and their metrics exist.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "grafana/victorialogs-dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read(t, "grafana/victorialogs-alerts.yml"), &alerts); err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, x := range p.Targets {
			expressions[x.Expr] = p.Title
		}
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			expressions[r.Expr] = r.Alert
		}
	}
	if len(expressions) < 15 {
		t.Fatalf("only %d expressions", len(expressions))
	}
	known := string(read(t, "operations.md"))
	for expr, where := range expressions {
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "5m")); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, name := range regexp.MustCompile(`shale_\w+`).FindAllString(expr, -1) {
			if !strings.Contains(known, "`"+strings.TrimSuffix(name, "_bucket")+"`") {
				t.Errorf("%s: no metric %s", where, name)
			}
		}
	}
}

func read(t *testing.T, name string) []byte {
	b, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
