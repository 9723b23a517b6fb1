package gateway

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/groups"
)

// groupCounts are the numbers of series of metrics and label sets, as ingesters have counted them up to a
// minute ago. The mutex of series guards it.
type groupCounts struct {
	of  map[int32]groupCount
	sum map[string]*groupSum // of all partitions, by tenant
}

type groupCount struct {
	*state.Groups
	at time.Time // when it came
}

// groupSum has the numbers of a tenant. Those of label sets are of the sets that text stands for.
type groupSum struct {
	groups.Numbers
	text string
}

func newGroupCounts() groupCounts {
	return groupCounts{of: map[int32]groupCount{}, sum: map[string]*groupSum{}}
}

// take takes the numbers of a partition.
func (g *groupCounts) take(r *state.Groups, now time.Time) {
	g.drop(r.Partition.Number)
	g.of[r.Partition.Number] = groupCount{r, now}
	for tenant := range r.Tenants {
		g.add(tenant)
	}
}

// drop drops the numbers of a partition.
func (g *groupCounts) drop(partition int32) {
	before, ok := g.of[partition]
	if !ok {
		return
	}
	delete(g.of, partition)
	for tenant := range before.Tenants {
		g.add(tenant)
	}
}

// add adds the partitions of a tenant up. Those whose ingester has other label sets, as during a reload, do
// not count for these.
func (g *groupCounts) add(tenant string) {
	sum := &groupSum{Numbers: groups.Numbers{Metrics: map[string]int64{}}}
	found := false
	var last time.Time
	for _, c := range g.of {
		if of, ok := c.Tenants[tenant]; ok && !c.at.Before(last) {
			sum.text, last, found = of.Text, c.at, true
		}
	}
	if !found {
		delete(g.sum, tenant)
		return
	}
	for _, c := range g.of {
		of, ok := c.Tenants[tenant]
		if !ok {
			continue
		}
		for name, n := range of.Metrics {
			sum.Metrics[name] += n
		}
		if of.Text != sum.text {
			continue
		}
		sum.Sets = append(sum.Sets, make([]int64, max(0, len(of.Sets)-len(sum.Sets)))...)
		for i, n := range of.Sets {
			sum.Sets[i] += n
		}
	}
	g.sum[tenant] = sum
}

// expire drops the numbers that were not repeated.
func (g *groupCounts) expire(now time.Time) {
	for number, c := range g.of {
		if now.Sub(c.at) > countAge {
			g.drop(number)
		}
	}
}

// overGroups refuses those of some new series that a limit on the series of a metric or of a label set
// refuses. It returns the others, and the first limit.
func (s *series) overGroups(b *model.Batch, l *groups.Limits, fresh []int, over func(label int)) (left []int, _ error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counted := groups.Numbers{}
	if sum := s.groups.sum[b.Tenant]; sum != nil {
		counted.Metrics = sum.Metrics
		if sum.text == l.Sets.Text() {
			counted.Sets = sum.Sets
		}
	}
	request := l.NewNumbers()
	var first *model.LimitError
	for _, label := range fresh {
		labels := b.Labels.At(label)
		err := l.Exceeds(&counted, request, b.Tenant, b.Signal, labels)
		if err == nil {
			l.Add(request, b.Signal, labels)
			left = append(left, label)
			continue
		}
		if first == nil {
			first = err
		}
		over(label)
	}
	if first == nil {
		return left, nil
	}
	first.Text = fmt.Sprintf("refused %d of %d new series: %s", len(fresh)-len(left), len(fresh), first.Text)
	return left, first
}
