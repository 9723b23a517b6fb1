package victorialogs

import (
	"context"
	"strconv"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/read/victorialogs/recent"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
)

// sampledBytes bounds the samples that are kept in memory, compressed.
const sampledBytes = 8 << 20

// samples are those of windows whose lines have settled. The name of one has the counts and sums of its
// lines, so that other lines have another name. They are shared as counted rows are. It is safe for
// concurrent use.
type samples struct {
	values recent.Values[cache.Key] // compressed
	// pauses are of samples without streams, by their selector, and of those that were too large.
	pauses recent.Pauses
}

// find looks for the samples of windows: in memory, then in the tiers that are shared.
func (k *samples) find(ctx context.Context, x *sampling) error {
	var keys []cache.Key
	var places []int
	for i := range x.windows {
		w := &x.windows[i]
		if w.stamp == "" {
			continue
		}
		if v := k.values.Get(w.key); v != nil {
			if size := w.take(v); !w.found {
				continue
			} else if err := x.charge(w, len(w.rows), size); err != nil {
				return err
			}
			continue
		}
		keys, places = append(keys, w.key), append(places, i)
	}
	s := x.source.shared
	if s == nil || len(keys) == 0 {
		return nil
	}
	found := make([]cache.Found, len(keys))
	s.tier.GetMany(ctx, keys, cache.Asker{}, found)
	for i, f := range found {
		w := &x.windows[places[i]]
		if f.From == cache.Nowhere {
			s.result("miss")
			continue
		}
		size := w.take(f.Value)
		if !w.found {
			s.result("damaged")
			continue
		}
		if err := x.charge(w, len(w.rows), size); err != nil {
			return err
		}
		s.result("hit")
		k.values.Put(w.key, f.Value)
	}
	return nil
}

// keep keeps the samples that were asked for, if their lines have settled.
func (k *samples) keep(x *sampling, asked, ended int64) {
	s := x.source.shared
	for i := range x.windows {
		w := &x.windows[i]
		if !w.fresh || !w.settled {
			continue
		}
		value := w.value()
		k.values.Put(w.key, value)
		if s != nil && !s.holds(w.key) {
			s.add(heldRows{account: x.account.Account, within: w.TimeRange, stamp: w.stamp, asked: asked, ended: ended, key: w.key, value: value, copies: true})
		}
	}
}

// value returns the sample of a window as it is kept: the digest in its name, a row with the number of lines,
// and the rows of the sample.
func (w *sampleWindow) value() []byte {
	b := append([]byte(nil), w.key.Digest[:]...)
	b = appendRow(b, []field{{[]byte("n"), strconv.AppendInt(nil, w.lines, 10)}})
	for _, row := range w.rows {
		b = appendRow(b, row)
	}
	return packer.EncodeAll(b, nil)
}

// take takes a value that is kept, and returns what its rows take. If it is not that of the window, the
// window stays unknown.
func (w *sampleWindow) take(value []byte) (size int64) {
	rows, size, ok := parseRows(value, w.key.Digest)
	if !ok || len(rows) == 0 || len(rows[0]) != 1 {
		return 0
	}
	lines, err := strconv.ParseInt(string(rows[0][0].value), 10, 64)
	if err != nil || lines < int64(len(rows)-1) {
		return 0
	}
	for _, row := range rows[1:] {
		if t, ok := rfc3339.Parse(valueOf(row, "_time")); !ok || !w.Contains(t) {
			return 0
		}
	}
	w.lines, w.rows, w.found = lines, rows[1:], true
	return size
}
