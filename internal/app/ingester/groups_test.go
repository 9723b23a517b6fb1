package ingester

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/write/groups"
)

// TestGroupsRecord: however many metrics there are, a record of them has room in the topic, is the same each
// time, and has those that are nearest to their limit. Metrics that are far from it are left out.
func TestGroupsRecord(t *testing.T) {
	const partitions = 4
	counted, limits := map[string]*groups.Numbers{}, map[string]*groups.Limits{}
	add := func(tenant string, most int64, series ...int64) {
		l := &groups.Limits{Metric: most}
		n := l.NewNumbers()
		for i, s := range series {
			n.Metrics[groups.Name(fmt.Appendf(nil, "metric%d", i))] = s
		}
		counted[tenant], limits[tenant] = n, l
	}
	at := state.Partition{Epoch: 1, Number: 3}
	add("few", 160, 9, 10, 11, 200)
	add("small limit", 3, 1)
	r, left := groupsRecord(counted, limits, at, partitions)
	if left != 0 || len(r.Tenants["few"].Metrics) != 2 || r.Tenants["few"].Metrics[groups.Name([]byte("metric2"))] != 11 || len(r.Tenants["small limit"].Metrics) != 1 {
		t.Errorf("%+v, %d are left", r, left)
	}
	many := make([]int64, 100_000)
	for i := range many {
		many[i] = int64(i + 100)
	}
	add("many", 100, many...)
	for i := range 12_000 {
		add(fmt.Sprintf("tenant %d", i), 1_000_000, 1)
	}
	r, left = groupsRecord(counted, limits, at, partitions)
	key, value := r.Encode()
	if _, err := state.Decode(key, value); err != nil || left == 0 || len(value) > 1<<20 {
		t.Errorf("%d bytes, %d are left: %v", len(value), left, err)
	}
	if of := r.Tenants["many"].Metrics; of[groups.Name([]byte("metric99999"))] == 0 || of[groups.Name([]byte("metric0"))] != 0 {
		t.Errorf("%d metrics of one tenant, and not those with most series", len(of))
	}
	again, _ := groupsRecord(counted, limits, at, partitions)
	if _, v := again.Encode(); !bytes.Equal(v, value) {
		t.Error("two records differ")
	}
}
