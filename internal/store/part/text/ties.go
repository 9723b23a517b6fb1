package text

import (
	"context"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// MaxTies is the number of rows of one time that a merge remembers, in about 40 bytes each. If there are
// more, it reads the texts again for each further block of rows: see takeTies.
const MaxTies = 1 << 20

// tieSet holds the hashes of rows of one time.
type tieSet struct {
	rows map[xxh3.Uint128]struct{}
	most int // see emptied
	buf  []byte
}

func (s *tieSet) reset() {
	if s.rows == nil {
		s.rows = make(map[xxh3.Uint128]struct{})
	}
	s.rows = emptied(s.rows, &s.most)
}

// release drops large memory.
func (s *tieSet) release() {
	if len(s.rows) > 1024 || s.most > 1024 {
		s.rows, s.most = nil, 0
	}
}

// hash returns what a row hashes to, besides its time.
func (s *tieSet) hash(rows *model.TextRows, k int) xxh3.Uint128 {
	h := xxh3.Hash128(rows.Line(k))
	if md := rows.MetadataAt(k); len(md) > 0 {
		s.buf = append(append(s.buf[:0], md...), 0)
		g := xxh3.Hash128Seed(s.buf, h.Lo)
		h.Hi, h.Lo = h.Hi^g.Hi, h.Lo^g.Lo
	}
	return h
}

func (s *tieSet) has(h xxh3.Uint128) bool {
	_, there := s.rows[h]
	return there
}

func (s *tieSet) add(h xxh3.Uint128) { s.rows[h] = struct{}{} }

// eachTie walks the rows of one time of a text, until visit returns false.
func eachTie(ctx context.Context, text Series, t int64, visit func(rows *model.TextRows, k int) (bool, error)) (bool, error) {
	run := text.Run(ctx, model.TimeRange{Min: t, Max: t})
	for run.Next() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			return false, err
		}
		for k := range rows.Times {
			if on, err := visit(rows, k); err != nil || !on {
				return false, err
			}
		}
	}
	return true, run.Err()
}

// eachTie walks the rows of one time of all inputs, each with its number, until visit returns false.
func (m *merge) eachTie(ctx context.Context, t int64, visit func(i int, rows *model.TextRows, k int) (bool, error)) error {
	i := 0
	for n := range m.in {
		on, err := eachTie(ctx, m.in[n].text, t, func(rows *model.TextRows, k int) (bool, error) {
			i++
			return visit(i-1, rows, k)
		})
		if err != nil || !on {
			return err
		}
	}
	return nil
}

// takeTies takes what is left of the rows of one time that are too many to remember: all but the first
// m.ties, in blocks. Two walks of all inputs find which rows of a block there were none like before.
func (x *Writer) takeTies(ctx context.Context, t int64) error {
	m := &x.merge
	var remap textRemap
	for from := m.ties; ; {
		m.seen.reset()
		next := from
		err := m.eachTie(ctx, t, func(i int, rows *model.TextRows, k int) (bool, error) {
			if i < from {
				return true, nil
			}
			m.seen.add(m.seen.hash(rows, k))
			next = i + 1
			return len(m.seen.rows) < x.w.Sizes.Ties, nil
		})
		if err != nil {
			return err
		}
		if next == from {
			break
		}
		m.seen.most = max(m.seen.most, len(m.seen.rows))
		err = m.eachTie(ctx, t, func(i int, rows *model.TextRows, k int) (bool, error) {
			if k == 0 {
				remap.forget() // a piece begins
			}
			if h := m.seen.hash(rows, k); m.seen.has(h) {
				delete(m.seen.rows, h)
				if i >= from {
					if err := x.addText(rows, k, k+1, &remap); err != nil {
						return false, err
					}
				}
			}
			return i+1 < next, nil
		})
		if err != nil {
			return err
		}
		from = next
	}
	return m.restart(ctx, t)
}

// restart starts all walks over, after a time.
func (m *merge) restart(ctx context.Context, t int64) error {
	m.some = false
	for n := range m.in {
		in := &m.in[n]
		*in = mergeInput{text: in.text, done: true}
		if t == m.clip.Max {
			continue
		}
		in.done, in.run = false, in.text.Run(ctx, model.TimeRange{Min: t + 1, Max: m.clip.Max})
		if err := in.advance(); err != nil {
			return err
		}
		if !in.done && in.time <= t {
			return column.Corrupt("text of time %d in a walk that begins after %d", in.time, t)
		}
	}
	return nil
}
