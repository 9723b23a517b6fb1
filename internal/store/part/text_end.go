package part

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Ends is what [Pages] may be beside: the end of a page of lines is less work than all of it.
type Ends interface {
	// PageEnd returns the end of the payload of a page of lines: what is behind the first skip of them, which is n bytes; or all
	// of it, or a longer end.
	PageEnd(ctx context.Context, a Addr, skip, n int) ([]byte, error)
}

// ReadTextEnd is [read.TextEnder.ReadTextEnd]. Lines of which only the end is read are not kept by the page: who needs more of them
// reads them all.
func (p *textPage) ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.readUnit(ctx, want&model.WantLines != 0); err != nil {
		return 0, p.named(err)
	}
	skip := first(p.unit.times)
	ends, ok := p.r.pages.(Ends)
	if u := p.unit; !ok || want&model.WantLines == 0 || p.e.text.lines == 0 || len(u.counts) > 1 || u.lines != nil || skip <= 0 || skip >= len(u.ends) {
		if err := p.read(ctx, want); err != nil {
			return 0, p.named(err)
		}
		return 0, p.fill(index, want, dst)
	}
	from := p.unit.ends[skip-1]
	n := int(p.unit.lineBytes()) - int(from)
	if err := p.take(int64(n)); err != nil {
		return 0, p.named(err)
	}
	end, err := ends.PageEnd(ctx, p.e.linesAddr(), skip, n)
	if err == nil && len(end) < n {
		err = corrupt("page of lines: %d bytes at its end, should be %d", len(end), n)
	}
	if err == nil {
		err = p.fill(index, want&^model.WantLines, dst)
	}
	if err != nil {
		_ = p.take(-int64(n)) // giving back does not fail
		return 0, p.named(fmt.Errorf("part: lines: page at %d: %w", p.e.linesAddr().Off, err))
	}
	dst.Bytes, dst.Begin = end[len(end)-n:], 0
	for _, e := range p.unit.ends {
		dst.Ends = append(dst.Ends, max(e, from)-from)
	}
	return skip, nil
}
