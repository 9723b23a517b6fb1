package ingester

import (
	"bytes"
	"context"
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
	// mostTenants and mostKnown bound a record. Of a tenant that is left out, gateways limit nothing.
	mostTenants = 10_000
	mostKnown   = 512 << 10
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
	r := &state.Series{Partition: state.Partition{Epoch: epoch.Number, Number: number}, Active: map[string]int64{}}
	known := 0
	for tenant, n := range h.ActiveByTenant() {
		if len(r.Active) == mostTenants {
			r.More = true
			break
		}
		r.Active[tenant] = n
		// Keys are spread evenly, so that other partitions have about as many.
		if limit := most(tenant); limit > 0 && n*int64(epoch.Partitions) > limit/2 {
			f := state.NewFilter(2 * n)
			if known += len(f); f == nil || known > mostKnown {
				continue
			}
			h.EachActive(tenant, f.Add)
			if r.Known == nil {
				r.Known = map[string]state.Filter{}
			}
			r.Known[tenant] = f
		}
	}
	return r
}
