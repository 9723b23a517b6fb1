package graphite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/write"
)

// byPath is a set of rules: what a path becomes, or why its points are dropped.
type byPath map[string]struct{ stored, dropped string }

func (r byPath) Sync() error { return nil }

func (r byPath) Pass(_ string, path []byte, _ int64, _ float64) ([]byte, string) {
	if rule, ok := r[string(path)]; ok {
		return []byte(rule.stored), rule.dropped
	}
	return path, ""
}

// TestRules: rules see paths as they were received, over every transport, and what they return is stored.
func TestRules(t *testing.T) {
	s := newStore()
	b := start(t, s, Options{PickleListen: "127.0.0.1:0", Rules: byPath{
		"a": {"b;c=d", ""}, "bad": {"", write.ReasonBlacklisted}, "t;x=y": {"t.x.y", ""}, "empty": {"", ""},
	}}, write.Limits{})
	nc := b.dial(t, "tcp")
	fmt.Fprint(nc, "a 1 1700000000\nbad 1 1700000000\nt;x=y 2 1700000000\nempty 2 1700000000\nkept 3 1700000000\n")
	nc.Close()
	s.wait(t, 3)
	s.Lock()
	for _, id := range []string{`anonymous{__name__="b", c="d"}`, `anonymous{__name__="t.x.y"}`, `anonymous{__name__="kept"}`} {
		if s.Rows[id] == nil {
			t.Errorf("no row of %s; there are %v", id, s.Rows)
		}
	}
	s.Unlock()
	eventually(t, func() bool { return testutil.ToFloat64(b.metrics.tcp.bad) == 1 }, func() string { return "the empty path is not counted as bad" })
	const want = `
# HELP shale_write_discarded_samples_total Samples received but not stored, by reason.
# TYPE shale_write_discarded_samples_total counter
shale_write_discarded_samples_total{reason="bad_line"} 1
shale_write_discarded_samples_total{reason="blacklisted"} 1
`
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(want), "shale_write_discarded_samples_total"); err != nil {
		t.Error(err)
	}
}
