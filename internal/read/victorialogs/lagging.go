package victorialogs

import (
	"context"
	"time"
)

const (
	// laggingBytes bounds the responses that a summary may use, and laggingFor how old they may be. That is
	// little next to how long the summary itself may be kept.
	laggingBytes = 8 << 20
	laggingFor   = time.Second
)

// query asks for the lines of a request, or where they are. A page asks at one time for the newest lines and
// for a summary of them, which may be that of a moment ago: it takes what was sent for the lines.
func (d *directory) query(ctx context.Context, kind, text string, each func(row []field) error) error {
	s := d.source
	ask := func(each func(row []field) error) error {
		n := 0
		err := s.client.query(ctx, d.account, kind, text, func(row []field) error {
			n++
			return each(row)
		})
		if kind == kindLines {
			s.metrics.rows.Add(float64(n))
		}
		return err
	}
	if s.settings.CheckEvery <= 0 || d.req.Cells != nil || d.req.Cost.Fresh {
		return ask(each)
	}
	key := d.owner(ctx) + text
	// What is kept until lines change must not be older than the look for changes.
	if d.req.Cost.MayLag && !s.watch.Covers(d.account.Account, d.req.Range) {
		if found, ok := s.lagging.Find(ctx, key); ok {
			rows, size, _ := parsePacked(found)
			if err := d.req.Quota.TakeBytes(size); err != nil {
				return err
			}
			defer func() { _ = d.req.Quota.TakeBytes(-size) }() // giving back does not fail
			for _, row := range rows {
				if err := each(row); err != nil {
					return err
				}
			}
			return nil
		}
	}
	own := s.lagging.Begin(key)
	whole := false
	defer func() { own.End(whole) }()
	err := ask(func(row []field) error {
		own.Append(func(b []byte) []byte { return appendRow(b, row) })
		return each(row)
	})
	whole = err == nil
	return err
}
