package load

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tallyQuery is one count: an expression at a time, and the bounds that its value must keep. If step is set, it is
// evaluated at all times from one to the other, and the sum of its values is what counts.
type tallyQuery struct {
	what           string
	expr           string
	from, ms, step int64
	least, most    int64
}

// countConcurrency is low because each count may hold a million samples in the server's memory.
const countConcurrency = 2

// counts compares the number of stored samples with the number of acknowledged ones, for every metric of a fleet, or
// in total for a fleet of agents.
func (c *checker) counts(ctx context.Context) {
	queries := make(chan tallyQuery)
	var total, bound, most int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(c.Concurrency, countConcurrency) {
		wg.Go(func() {
			for q := range queries {
				n, ok := c.count(ctx, q)
				mu.Lock()
				total += n
				if !ok {
					total = math.MinInt64 / 2 // a query that failed has been noted; no total follows
				}
				mu.Unlock()
			}
		})
	}
	send := func(q tallyQuery) {
		bound, most = bound+q.least, most+q.most
		select {
		case queries <- q:
		case <-ctx.Done():
		}
	}
	switch from := c.from.(type) {
	case *fleetOrigin:
		from.counts(c.Chunk, send)
	case *agentsOrigin:
		from.counts(c.Chunk, send)
		bound = from.least()
	}
	close(queries)
	wg.Wait()
	if total < 0 || ctx.Err() != nil {
		return
	}
	c.out.Counted, c.out.CountedOf = total, bound
	// Of a fleet this has been noted query by query.
	if _, ok := c.from.(*agentsOrigin); ok && total < bound {
		c.note(&c.out.Short, bound-total, "%d points stored, and the server had received %d", total, bound)
	}
}

// count runs one query.
func (c *checker) count(ctx context.Context, q tallyQuery) (int64, bool) {
	curves, err := c.ask(func() ([]curve, error) {
		if q.step > 0 {
			return c.Reader.queryRange(ctx, q.expr, q.from, q.ms, q.step)
		}
		return c.Reader.query(ctx, q.expr, q.ms)
	})
	if err != nil {
		return 0, false
	}
	var n int64
	for _, curve := range curves {
		n += int64(math.Float64frombits(curve.Value.bits))
		for _, s := range curve.Values {
			n += int64(math.Float64frombits(s.bits))
		}
	}
	if n < q.least {
		c.note(&c.out.Short, q.least-n, "%s: %d samples stored, %d acknowledged", q.what, n, q.least)
	}
	if n > q.most {
		c.note(&c.out.Over, n-q.most, "%s: %d samples stored, %d sent", q.what, n, q.most)
	}
	return n, true
}

// What one count may cost a server beside samples: the labels of its series, and the length of its pattern.
const (
	maxSeriesPerCount = 100_000
	maxNamesPerCount  = 1000
)

// counts cuts the fleet into queries of at most chunk samples: by metric, by rounds if that is too much, and by
// targets if even one round is.
func (o *fleetOrigin) counts(chunk int64, send func(tallyQuery)) {
	rounds := o.rounds()
	perTarget := int64(o.Series)
	targets := int(min(int64(o.Targets), max(1, min(chunk, maxSeriesPerCount)/perTarget)))
	if targets < o.Targets {
		targets = min(targets, maxNamesPerCount)
	}
	step := 1
	if targets == o.Targets {
		step = int(max(1, chunk/(perTarget*int64(o.Targets))))
	}
	for metric := range o.Metrics {
		for first := 0; first < rounds; first += step {
			end := min(first+step, rounds)
			for t := 0; t < o.Targets; t += targets {
				send(o.countQuery(metric, t, min(t+targets, o.Targets), first, end))
			}
		}
	}
}

func (o *fleetOrigin) countQuery(metric, fromTarget, toTarget, first, end int) tallyQuery {
	q := tallyQuery{ms: o.state.Timeline.ms(end - 1)}
	selector := fmt.Sprintf("%s{job=%q}", o.metricName(metric), o.job())
	if toTarget-fromTarget < o.Targets {
		selector = fmt.Sprintf("%s{job=%q,instance=~%q}", o.metricName(metric), o.job(), o.instances(fromTarget, toTarget))
	}
	q.what = fmt.Sprintf("%s of targets %d to %d, rounds %d to %d", o.metricName(metric), fromTarget, toTarget-1, first, end-1)
	q.expr = fmt.Sprintf("sum(count_over_time(%s%s))", selector, window(o.state.Timeline.ms(first), q.ms))
	for round := first; round < end; round++ {
		if o.state.Acks.whole(round) {
			all := int64(toTarget-fromTarget) * int64(o.Series)
			q.least, q.most = q.least+all, q.most+all
			continue
		}
		for t := fromTarget; t < toTarget; t++ {
			least, most := o.bounds(round, o.number(t, metric), int64(o.Series))
			q.least, q.most = q.least+least, q.most+most
		}
	}
	return q
}

func (o *fleetOrigin) instances(from, to int) string {
	var sb strings.Builder
	for t := from; t < to; t++ {
		if t > from {
			sb.WriteByte('|')
		}
		sb.WriteString(strings.ReplaceAll(o.instance(t), ".", `\.`))
	}
	return sb.String()
}

// bounds returns how many samples of n series from g on must be there of a round, and how many may.
func (o *fleetOrigin) bounds(round int, g, n int64) (least, most int64) {
	size := int64(o.state.Batch)
	for end := g + n; g < end; {
		batch := g / size
		next := min(end, (batch+1)*size)
		switch o.batchStanding(round, int(batch)) {
		case surely:
			least, most = least+next-g, most+next-g
		case perhaps:
			most += next - g
		}
		g = next
	}
	return least, most
}

// counts asks for a few agents at a time, and for some of the rounds if one agent alone is too much. No agent has a
// lower bound: the server's counter knows no agents.
//
// count_over_time will not do: it drops the name, which is all that tells these series apart, and Prometheus refuses
// an answer in which labels come twice. last_over_time keeps it, and over one millisecond it gives the points of
// exactly one round.
func (o *agentsOrigin) counts(chunk int64, send func(tallyQuery)) {
	rounds := o.rounds()
	step := int(min(int64(rounds), maxRoundsPerQuery, max(1, chunk/int64(o.Metrics))))
	if rounds == 0 {
		return
	}
	agents := int(min(maxNamesPerCount, int64(o.Agents.Agents), max(1, min(chunk/int64(step), maxSeriesPerCount)/int64(o.Metrics))))
	for from := 0; from < o.Agents.Agents; from += agents {
		to := min(from+agents, o.Agents.Agents)
		for first := 0; first < rounds; first += step {
			end := min(first+step, rounds)
			q := tallyQuery{
				from: o.state.Timeline.ms(first), ms: o.state.Timeline.ms(end - 1), step: o.state.Timeline.Step / int64(time.Millisecond),
				expr: fmt.Sprintf("count(last_over_time({__name__=~%q}[1ms]))", o.pattern(from, to)),
			}
			q.what = fmt.Sprintf("agents %d to %d, rounds %d to %d", from, to-1, first, end-1)
			for agent := from; agent < to; agent++ {
				for round := first; round < end; round++ {
					q.most += o.most(agent, round)
				}
			}
			send(q)
		}
	}
}

// pattern matches the names of the agents [from, to).
func (o *agentsOrigin) pattern(from, to int) string {
	var sb strings.Builder
	sb.WriteString(strings.ReplaceAll(o.Prefix, ".", `\.`))
	if to-from == o.Agents.Agents {
		sb.WriteString(`\.agent\.[0-9]+\.metrics\.[0-9]+`)
		return sb.String()
	}
	sb.WriteString(`\.agent\.(`)
	for agent := from; agent < to; agent++ {
		if agent > from {
			sb.WriteByte('|')
		}
		sb.WriteString(strconv.Itoa(agent))
	}
	sb.WriteString(`)\.metrics\.[0-9]+`)
	return sb.String()
}

// most returns how many points of an agent may be there of a round.
func (o *agentsOrigin) most(agent, round int) int64 {
	c, at := o.position(int64(agent)*int64(o.Metrics), round)
	if !o.state.Ended {
		return int64(o.Metrics)
	}
	return int64(min(uint64(o.Metrics), max(at, o.state.Trail.Sent[c])-at))
}

// least returns how many points must be there in all.
func (o *agentsOrigin) least() int64 {
	if o.intact {
		var n uint64
		for _, sent := range o.state.Trail.Sent {
			n += sent
		}
		return int64(n)
	}
	if o.sentBefore > 0 {
		return int64(o.sentBefore)
	}
	return int64(o.state.Trail.Kept())
}
