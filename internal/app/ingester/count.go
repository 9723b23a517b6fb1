package ingester

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/store/topics"
)

const (
	// countEvery is how often series are counted.
	countEvery = 10 * time.Second
	// repeatEvery is after how many counts one is sent again that has not changed.
	repeatEvery = 6
	// mostTenants, mostNames and mostBytes bound a record, the tenants in it, and all of it. Of a tenant that is
	// left out, or has no filter, gateways limit nothing.
	mostTenants = 10_000
	mostNames   = 512 << 10
	mostBytes   = 1<<20 - 1<<10
)

// Count tells gateways how many active series tenants have in the partitions of this process, until ctx ends.
// Of tenants near their limits, it says which these are.
func Count(ctx context.Context, owner *ingest.Owner, to *kafka.State, epoch *topics.Epoch, most func(tenant string) int64) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	said := map[int32][]byte{}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n%repeatEvery == 0 { // Kafka may not have taken what was said
			clear(said)
		}
		owner.Each(func(number int32, p *ingest.Partition, s ingest.State, _ error) {
			if s != ingest.Ready {
				delete(said, number) // another process may count it meanwhile
				return
			}
			key, value := countOf(p, number, epoch, most).Encode()
			if !bytes.Equal(value, said[number]) {
				to.Put(key, value)
				said[number] = value
			}
		})
	}
}

// countOf counts the series of a partition.
func countOf(p *ingest.Partition, number int32, epoch *topics.Epoch, most func(tenant string) int64) *state.Series {
	h := p.Head()
	r := record(h.ActiveByTenant(), state.Partition{Epoch: epoch.Number, Number: number}, epoch.Partitions, most)
	add := make(map[string]func(uint64), len(r.Known))
	for tenant, f := range r.Known {
		add[tenant] = f.Add
	}
	h.EachActive(add)
	return r
}

// record returns the record of a partition with empty filters. If not all has room, the tenants with most
// series are counted, and the smallest filters are there. The same series make the same record.
func record(active map[string]int64, p state.Partition, partitions int32, most func(tenant string) int64) *state.Series {
	r := &state.Series{Partition: p, Active: map[string]int64{}, Known: map[string]state.Filter{}}
	tenants := slices.SortedFunc(maps.Keys(active), func(a, b string) int {
		return cmp.Or(cmp.Compare(active[b], active[a]), strings.Compare(a, b))
	})
	used := 0
	for i, tenant := range tenants {
		used += len(tenant) + len(`"":2147483647,`)
		if i == mostTenants || used > mostNames {
			r.More, tenants = true, tenants[:i]
			break
		}
		r.Active[tenant] = active[tenant]
	}
	for _, tenant := range slices.Backward(tenants) {
		n := active[tenant]
		// Keys are spread evenly, so that other partitions have about as many.
		if limit := most(tenant); limit <= 0 || n*int64(partitions) <= limit/2 {
			continue
		}
		f := state.NewFilter(2 * n)
		size := len(tenant) + len(`"":"",`) + base64.StdEncoding.EncodedLen(len(f))
		if f != nil && used+size <= mostBytes {
			r.Known[tenant] = f
			used += size
		}
	}
	return r
}
