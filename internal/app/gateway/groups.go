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

// groupSum has the numbers of a tenant. It is kept by differences: partitions are counted each minute, and
// to add all of them up for each would hold back writes.
type groupSum struct {
	partitions int
	metrics    map[string]int64
	// sets are the numbers of label sets, by the text that these have. During a reload, ingesters have
	// different ones; those of last count.
	sets map[string]*setSum
	last string
}

// setSum are numbers of label sets of some partitions.
type setSum struct {
	partitions int
	numbers    []int64
}

func newGroupCounts() groupCounts {
	return groupCounts{of: map[int32]groupCount{}, sum: map[string]*groupSum{}}
}

// take takes the numbers of a partition.
func (g *groupCounts) take(r *state.Groups, now time.Time) {
	before := g.of[r.Partition.Number]
	g.of[r.Partition.Number] = groupCount{r, now}
	for tenant, of := range r.Tenants {
		sum := g.sum[tenant]
		if sum == nil {
			sum = &groupSum{metrics: map[string]int64{}, sets: map[string]*setSum{}}
			g.sum[tenant] = sum
		}
		sum.add(&of, 1)
		sum.last = of.Text
	}
	g.subtract(&before)
}

// drop drops the numbers of a partition.
func (g *groupCounts) drop(partition int32) {
	before := g.of[partition]
	delete(g.of, partition)
	g.subtract(&before)
}

// subtract takes the numbers of a count that is no longer in of from the sums.
func (g *groupCounts) subtract(c *groupCount) {
	if c.Groups == nil {
		return
	}
	for tenant, of := range c.Tenants {
		sum := g.sum[tenant]
		if sum.add(&of, -1); sum.partitions == 0 {
			delete(g.sum, tenant)
		} else if sum.sets[sum.last] == nil {
			sum.last = g.lastText(tenant)
		}
	}
}

// lastText returns the text of the label sets of a tenant that came last.
func (g *groupCounts) lastText(tenant string) (text string) {
	var last time.Time
	for _, c := range g.of {
		if of, ok := c.Tenants[tenant]; ok && !c.at.Before(last) {
			text, last = of.Text, c.at
		}
	}
	return text
}

// add adds (1) or subtracts (-1) the numbers of a partition.
func (s *groupSum) add(of *state.TenantGroups, sign int64) {
	s.partitions += int(sign)
	for name, n := range of.Metrics {
		if s.metrics[name] += sign * n; s.metrics[name] == 0 {
			delete(s.metrics, name)
		}
	}
	sets := s.sets[of.Text]
	if sets == nil {
		sets = &setSum{}
		s.sets[of.Text] = sets
	}
	sets.numbers = append(sets.numbers, make([]int64, max(0, len(of.Sets)-len(sets.numbers)))...)
	for i, n := range of.Sets {
		sets.numbers[i] += sign * n
	}
	if sets.partitions += int(sign); sets.partitions == 0 {
		delete(s.sets, of.Text)
	}
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
func (s *series) overGroups(b *model.Batch, l *groups.Limits, fresh []int) (left, refused []int, _ error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counted := groups.Numbers{}
	if sum := s.groups.sum[b.Tenant]; sum != nil {
		counted.Metrics = sum.metrics
		if text := l.Sets.Text(); sum.last == text {
			counted.Sets = sum.sets[text].numbers
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
		refused = append(refused, label)
	}
	if first == nil {
		return left, nil, nil
	}
	first.Text = fmt.Sprintf("refused %d of %d new series: %s", len(refused), len(fresh), first.Text)
	return left, refused, first
}
