package progress

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// Accepted bounds the times of rows that gateways accept.
type Accepted struct {
	// MaxAge is how old a row may be (0: any age), and MaxFuture how far ahead of the clock.
	MaxAge, MaxFuture time.Duration
}

// Warn adds to the cost of a query which records operators have given up that may have had rows of its range.
// They were not read, so each tenant and signal may have had some. Those that lost returns are not in the
// catalogue yet; nil: there are none.
func Warn(r *model.Request, lost func() []catalog.GivenUp, c *catalog.Catalog, limits Accepted) {
	var all []catalog.GivenUp
	if lost != nil {
		all = lost() // first: the catalogue may hear of them just now
	}
	warn(r, append(all, c.GivenUp()...), limits)
}

func warn(r *model.Request, all []catalog.GivenUp, limits Accepted) {
	var topic []*catalog.GivenUp // all that was lost of a topic is one warning
	all = touching(r.Range, all, limits)
	for i := range all {
		g := &all[i]
		switch {
		case g.To < catalog.ToEnd:
			r.Cost.Warnings.Add(fmt.Sprintf("the result may lack rows: %s, %s were given up: %s; they came %s",
				partitionOf(&g.Skip), offsetsOf(&g.Skip), g.Why, cameIn(g.After, g.Before)))
		case len(topic) > 0 && topic[0].Epoch != g.Epoch:
			warnOfTopic(r, topic)
			topic = append(topic[:0:0], g)
		default:
			topic = append(topic, g)
		}
	}
	if len(topic) > 0 {
		warnOfTopic(r, topic)
	}
}

// touching returns the losses that may have had rows of a range. Those that follow each other in a journal
// for one reason are one: records that cannot be read are given up one at a time, and a query has ten
// warnings.
func touching(r model.TimeRange, all []catalog.GivenUp, limits Accepted) (joined []catalog.GivenUp) {
	if len(all) == 0 { // usually
		return nil
	}
	ends := map[entry]int{} // where the next one would go on: index in joined, plus one
	for i := range all {
		g := &all[i]
		if !rowsOf(g, limits).Overlaps(r) {
			continue
		}
		at := ends[entry{g.Node, g.Epoch, g.From, g.Why}]
		if at == 0 {
			joined = append(joined, *g)
			at = len(joined)
		} else {
			x := &joined[at-1]
			x.To, x.After, x.Before = g.To, min(x.After, g.After), max(x.Before, g.Before)
		}
		if g.To < catalog.ToEnd {
			ends[entry{g.Node, g.Epoch, g.To + 1, g.Why}] = at
		}
	}
	return joined
}

// entry is where a loss of a journal begins, and its reason.
type entry struct {
	node  string
	epoch uint64
	from  uint64
	why   string
}

// mostNamed bounds the partitions in a warning.
const mostNamed = 16

// warnOfTopic is warn for partitions of one epoch that were given up up to their ends.
func warnOfTopic(r *model.Request, topic []*catalog.GivenUp) {
	var names []string
	after, before := topic[0].After, topic[0].Before
	for _, g := range topic {
		after, before = min(after, g.After), max(before, g.Before)
		names = append(names, partitionOf(&g.Skip)+", "+offsetsOf(&g.Skip))
	}
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	r.Cost.Warnings.Add(fmt.Sprintf("the result may lack rows: %s were given up: %s; they came %s", strings.Join(names, "; "), topic[0].Why, cameIn(after, before)))
}

// partitionOf names the journal of a loss.
func partitionOf(s *catalog.Skip) string {
	if n, ok := topics.PartitionOfNode(s.Node); ok {
		return fmt.Sprintf("partition %d of epoch %d", n, s.Epoch)
	}
	return fmt.Sprintf("journal %s of epoch %d", s.Node, s.Epoch)
}

// offsetsOf names the records of a loss, as Kafka counts them.
func offsetsOf(s *catalog.Skip) string {
	first, last := topics.Offset(s.From)-1, topics.Offset(s.To)-1
	if s.To == catalog.ToEnd {
		return fmt.Sprintf("offsets from %d", first)
	}
	return fmt.Sprintf("offsets %d to %d", first, last)
}

// cameIn says when records came. after is 0 if it is not known.
func cameIn(after, before int64) string {
	until := time.Unix(0, before).UTC().Format(time.RFC3339)
	if after == 0 {
		return "before " + until
	}
	return fmt.Sprintf("between %s and %s", time.Unix(0, after).UTC().Format(time.RFC3339), until)
}

// clocksApart is how far the clocks of brokers, gateways and operators may be apart, together with the time
// that a gateway keeps a record.
const clocksApart = int64(time.Hour)

// rowsOf bounds the times of the rows that a loss may have had.
func rowsOf(g *catalog.GivenUp, limits Accepted) model.TimeRange {
	r := model.TimeRange{Min: math.MinInt64, Max: g.Before + clocksApart + int64(limits.MaxFuture)}
	if r.Max < g.Before {
		r.Max = math.MaxInt64
	}
	if g.After > 0 && limits.MaxAge > 0 {
		r.Min = g.After - clocksApart - int64(limits.MaxAge)
	}
	return r
}
