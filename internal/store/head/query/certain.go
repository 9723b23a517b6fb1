package query

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
)

// setCounts are the label sets of a tenant in the label store: those that a request selects, and the others.
// A set that is stored twice until a merge counts twice.
type setCounts struct{ selected, others int64 }

func (n *setCounts) add(all, selected int64) {
	n.selected += selected
	n.others += all - selected
}

// checkSeries refuses a request that is certain to return more series than its query may select, before it
// reads any. Of two hundred million series, to find the first two million takes many seconds.
//
// Each series of a data part within the range has rows in it, and labels in the label store. So the request
// returns all series of such a part, except at most as many as there are label sets that it does not select.
// Nothing is certain of a list of labels, which may end early, of rows that may be hidden, or after labels
// were lost.
func (c *cursor) checkSeries(ctx context.Context) error {
	q, n, rows := c.req.Quota, c.sets, int64(0)
	for i := range c.parts {
		if p := &c.parts[i]; p.whole {
			rows = max(rows, p.series)
		}
	}
	if c.req.LabelsOnly || c.view.LabelsLost || c.mayHide() || q.CheckSeries(rows-n.others) == nil {
		return nil
	}
	for _, r := range c.view.LabelRuns {
		entries := r.Tenant(c.req.Tenant)
		for i := range entries {
			if i%4096 == 0 && (ctx.Err() != nil || q.CheckSeries(rows-n.others) == nil) {
				return ctx.Err()
			}
			n.add(1, selects(entries[i].Labels(), c.req.Matchers))
		}
	}
	return q.CheckSeries(min(rows-n.others, n.selected))
}

// selects returns 1 for labels that satisfy the matchers, and 0 for others.
func selects(l model.Labels, ms []model.Matcher) int64 {
	if labels.Satisfies(l, ms) {
		return 1
	}
	return 0
}
