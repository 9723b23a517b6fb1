package labels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// TestLabelRuns: what buffers of several tenants and signals become, by sealing and combining, has each key
// once, with the labels that came first, in order; and no byte that was counted is lost or made.
func TestLabelRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	type id struct {
		signal model.Signal
		tenant string
		key    model.Key
	}
	for round := range 30 {
		want := make(map[id]string)
		runs := make(map[model.Signal]*Run)
		counted := int64(0)
		lb := NewBuffer()
		for range 1 + r.IntN(4) {
			for n := range 1 + r.IntN(3000) {
				// Keys come again, and many agree in their upper half.
				i := id{[]model.Signal{model.Metrics, model.Logs}[r.IntN(2)], fmt.Sprint("tenant-", r.IntN(3)), model.Key{Hi: uint64(r.IntN(700)) << 20, Lo: uint64(r.IntN(3))}}
				l := model.LabelsOf("name", fmt.Sprint(n), "some", strings.Repeat("x", r.IntN(40)))
				more := int64(r.IntN(2) * 64)
				before := lb.Bytes
				lb.Add(i.tenant, i.signal, i.key, l, more)
				if lb.Bytes-before < int64(len(l))+more {
					t.Fatalf("%d bytes were counted as %d", int64(len(l))+more, lb.Bytes-before)
				}
				if _, ok := want[i]; !ok {
					want[i] = string(l)
				}
			}
			counted += lb.Bytes
			var sealed []*Run
			if sealed, lb = lb.Seal(); lb.Bytes != 0 || len(lb.lists) != 0 {
				t.Fatal("the next buffer is not empty")
			}
			for _, s := range sealed {
				if older := runs[s.Signal]; older != nil {
					if r.IntN(2) == 0 {
						older.Tenant(fmt.Sprint("tenant-", r.IntN(3)))
						s.Tenant(fmt.Sprint("tenant-", r.IntN(3)))
					}
					s = combine(older, s)
				}
				runs[s.Signal] = s
			}
		}
		found := 0
		for signal, run := range runs {
			counted -= run.Bytes
			var last *id
			for s, err := range part.All(context.Background(), run.Stream()) {
				if err != nil {
					t.Fatal(err)
				}
				i := id{signal, s.Tenant, s.Key}
				if last != nil && (i.tenant < last.tenant || i.tenant == last.tenant && !last.key.Less(i.key)) {
					t.Fatalf("round %d: %v after %v", round, i, last)
				}
				if got := string(s.Labels); got != want[i] {
					t.Fatalf("round %d: %v has %q, should have %q", round, i, got, want[i])
				}
				last = &i
				found++
			}
			for tenant := range 4 {
				name := fmt.Sprint("tenant-", tenant)
				n := 0
				for i := range want {
					if i.signal == signal && i.tenant == name {
						n++
					}
				}
				entries := run.Tenant(name)
				if len(entries) != n || !slices.IsSortedFunc(entries, func(a, b Entry) int { return a.Key.Compare(b.Key) }) {
					t.Fatalf("round %d: %s has %d sets, should have %d", round, name, len(entries), n)
				}
			}
		}
		if found != len(want) || counted != 0 {
			t.Fatalf("round %d: %d of %d sets; %d bytes too many were counted", round, found, len(want), counted)
		}
	}
}

// TestTenantsApart: to read the labels of a tenant sorts nothing of others, and copies nothing of those that
// only one of two runs has.
func TestTenantsApart(t *testing.T) {
	seal := func(lo uint64, tenants ...string) *Run {
		lb := NewBuffer()
		for _, tenant := range tenants {
			lb.Add(tenant, model.Metrics, model.Key{Lo: lo}, model.LabelsOf("a", "b"), 0)
		}
		runs, _ := lb.Seal()
		return runs[0]
	}
	older, newer := seal(1, "a", "c"), seal(2, "b", "c", "d")
	older.Tenant("a")
	both := combine(older, newer)
	if got := len(both.Tenant("c")); got != 2 {
		t.Errorf("%d sets of the tenant of both", got)
	}
	var sorted []string
	for _, of := range both.tenants {
		if of.entries != nil {
			sorted = append(sorted, of.name)
		}
	}
	if !slices.Equal(sorted, []string{"a", "c"}) || both.tenants[0] != older.tenants[0] || both.tenants[3] != newer.tenants[2] {
		t.Errorf("sorted are %v, or some are not shared", sorted)
	}
}
