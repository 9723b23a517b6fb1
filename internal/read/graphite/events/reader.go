package events

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/event"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// Lines answers queries for lines: a [logql.Engine].
type Lines interface {
	Lines(ctx context.Context, q *logql.Query) (*logql.Lines, error)
}

// Reader finds events. It is safe for concurrent use.
type Reader struct{ Lines Lines }

// Query asks for events.
type Query struct {
	Tenant string
	// Start and End bound the times of events, in Unix nanoseconds. Both belong to the range.
	Start, End int64
	// Tags are those that an event must have: all of them, or any with Union. Nil: any event is wanted.
	Tags  []string
	Union bool
	Quota *model.Quota
	Cost  *model.Cost
}

// Find returns the events that a query asks for, sorted by time, those of the same time as they arrived.
func (r *Reader) Find(ctx context.Context, q *Query) ([]event.Event, error) {
	if q.Tags != nil && len(q.Tags) == 0 {
		return nil, nil
	}
	all, err := r.read(ctx, q, filter(q.Tags, q.Union))
	if err != nil || q.Tags == nil {
		return all, err
	}
	kept := all[:0]
	for i := range all {
		if all[i].Has(q.Tags, q.Union) {
			kept = append(kept, all[i])
		}
	}
	return kept, nil
}

// Get returns the event with an id, and whether there is one. Of the query, only the tenant, the quota and
// the cost count.
func (r *Reader) Get(ctx context.Context, q *Query, id int64) (event.Event, bool, error) {
	second := event.SecondOf(id)
	if id < 0 || second >= event.Seconds {
		return event.Event{}, false, nil
	}
	of := *q
	of.Start, of.End = second*1e9, second*1e9+999_999_999
	all, err := r.read(ctx, &of, " | "+event.IDName+"=`"+strconv.FormatInt(id, 10)+"`")
	if err != nil || len(all) == 0 {
		return event.Event{}, false, err
	}
	return all[0], true, nil
}

// filter returns the stages that lines of events with the tags pass.
func filter(tags []string, union bool) string {
	var text strings.Builder
	for i, tag := range tags {
		if i > 0 && union {
			text.WriteString(" or ")
		} else {
			text.WriteString(" |= ")
		}
		text.WriteString(strconv.Quote(event.Needle(tag)))
	}
	return text.String()
}

func (r *Reader) read(ctx context.Context, q *Query, stages string) ([]event.Event, error) {
	prepared, err := logql.Prepare(event.Selector + stages)
	if err != nil {
		return nil, err
	}
	end := q.End
	if end < math.MaxInt64 {
		end++
	}
	lines, err := r.Lines.Lines(ctx, &logql.Query{
		Tenants: []string{q.Tenant}, Prepared: prepared, Start: q.Start, End: end, Direction: logql.Forward, Categorize: true, Quota: q.Quota, Cost: q.Cost,
	})
	if err != nil {
		return nil, err
	}
	var all []event.Event
	own := event.Labels().String()
	for i := range lines.Streams {
		s := &lines.Streams[i]
		if s.Labels.String() != own {
			continue // a stream of another sender, which has further labels
		}
		if err := q.Quota.TakeBytes(int64(len(s.Entries)) * eventBytes); err != nil {
			return nil, err
		}
		for j := range s.Entries {
			l := &s.Entries[j]
			if e, ok := event.Read(l.Time, l.Line, l.Metadata.Get(event.IDName)); ok {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// eventBytes is about the memory of an event besides its line, whose text it repeats.
const eventBytes = 512
