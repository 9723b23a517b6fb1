package logql

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Volume says how much there is of streams.
type Volume struct {
	Streams, Chunks, Bytes, Lines uint64
}

// StreamVolume is the volume of one stream.
type StreamVolume struct {
	Labels model.Labels
	Volume
}

// Volume returns how much the selected streams have within the range, all together. No line is read.
func (e *Engine) Volume(ctx context.Context, s *Selection) (Volume, error) {
	var all Volume
	err := e.Volumes(ctx, s, func(v *StreamVolume) error {
		all.Streams++
		all.Chunks += v.Chunks
		all.Bytes += v.Bytes
		all.Lines += v.Lines
		return nil
	})
	return all, err
}

// Volumes calls visit with the volume of each selected stream that has lines within the range; of a stream
// that satisfies several selectors, once for each. What it gives is valid during the call. Lines are counted
// from the times of chunks that reach beyond the range, and of such chunks bytes are taken as evenly spread
// over their lines. Lines that are stored twice, since they were not merged yet, count twice.
func (e *Engine) Volumes(ctx context.Context, s *Selection, visit func(*StreamVolume) error) error {
	return s.each(func(tenant string, req *model.Request) error {
		req.LabelsOnly = false
		set, err := e.read.SelectText(ctx, req)
		if err != nil {
			return err
		}
		defer set.Close()
		var chunks []model.TextChunk
		var rows model.TextRows
		var p pairs
		var labels []byte
		for set.Next(ctx) {
			if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
				return err
			}
			v := StreamVolume{Volume: Volume{Streams: 1}}
			for i := range chunks {
				if err := v.add(ctx, &chunks[i], set.Range(), &rows); err != nil {
					return err
				}
			}
			if v.Lines == 0 {
				continue
			}
			v.Labels = set.Labels()
			if len(s.Tenants) > 1 {
				p.reset()
				p.add(set.Labels())
				p.setTenant(tenant)
				labels = p.append(labels[:0])
				v.Labels = labels
			}
			if err := visit(&v); err != nil {
				return err
			}
		}
		return set.Err()
	})
}

// add counts what of a chunk lies within a range.
func (v *StreamVolume) add(ctx context.Context, c *model.TextChunk, within model.TimeRange, rows *model.TextRows) error {
	lines, bytes := uint64(c.Rows), uint64(c.Bytes)
	if !within.Contains(c.Min) || !within.Contains(c.Max) {
		rows.Reset()
		err := c.Page.ReadText(ctx, c.Index, 0, rows)
		c.Page.Release()
		if err != nil {
			return err
		}
		from, _ := slices.BinarySearch(rows.Times, within.Min)
		to := from
		for to < len(rows.Times) && rows.Times[to] <= within.Max {
			to++
		}
		lines = uint64(to - from)
		if c.Rows > 0 {
			bytes = uint64(float64(c.Bytes) * float64(lines) / float64(c.Rows))
		}
	}
	if lines > 0 {
		v.Chunks++
		v.Lines += lines
		v.Bytes += bytes
	}
	return nil
}
