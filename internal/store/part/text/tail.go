package text

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Ends is an optional interface of [file.Pages] that can read the end of a page of lines without decoding the
// whole page.
type Ends interface {
	// PageEnd returns the end of the payload of a page of lines.
	PageEnd(ctx context.Context, a file.Addr, t lines.Tail) ([]byte, error)
	// HasEnd reports whether an end of a page of lines is in memory.
	HasEnd(a file.Addr) bool
}

// ReadTextEnd is [read.TextEnder.ReadTextEnd]. The page does not keep the end of its lines: a caller that
// needs more of them reads all.
func (p *page) ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.readUnit(ctx, want); err != nil {
		return 0, p.named(err)
	}
	u := p.unit
	ends, ok := p.r.Pages().(Ends)
	skip := 0
	if ok && want&model.WantLines != 0 && p.e.Text.Lines.Len > 0 && len(u.Counts) == 1 && u.lines == nil {
		skip = first(u.Times)
	}
	total := int(u.lineBytes())
	if skip <= 0 || skip >= len(u.ends) || 2*int(u.ends[skip-1]) < total {
		if err := p.read(ctx, want); err != nil {
			return 0, p.named(err)
		}
		return 0, p.fill(index, want, dst)
	}
	from := u.ends[skip-1]
	e := lines.Tail{Skip: skip, Bytes: total - int(from), Total: total}
	if err := p.holdEnd(int64(e.Bytes)); err != nil {
		return 0, p.named(err)
	}
	end, err := ends.PageEnd(ctx, p.e.Text.Lines, e)
	if err == nil {
		err = p.fill(index, want&^(model.WantLines|model.WantLengths), dst)
	}
	if err != nil {
		_ = p.holdEnd(0) // giving back does not fail
		return 0, p.named(fmt.Errorf("part: lines: page at %d: %w", p.e.Text.Lines.Off, err))
	}
	dst.Bytes, dst.Begin = end, 0
	for _, at := range u.ends {
		dst.Ends = append(dst.Ends, max(at, from)-from)
	}
	return skip, nil
}

// holdEnd charges the end that is being read, instead of the one before.
func (p *page) holdEnd(n int64) error {
	if err := p.charge(n - p.end); err != nil {
		return err
	}
	p.end = n
	return nil
}
