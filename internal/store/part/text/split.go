package text

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// StoredPages is an optional interface of [file.Pages] that can read a page without decoding it.
type StoredPages interface {
	// Stored returns a page as it is stored.
	Stored(ctx context.Context, a file.Addr) ([]byte, error)
	// HasDecoded reports whether the decoded page is in memory.
	HasDecoded(a file.Addr) bool
}

// ReadTextSplit is [read.TextSplitter.ReadTextSplit]. Lines that are in memory are not split.
func (p *page) ReadTextSplit(ctx context.Context, index int, dst *model.TextRows) (*model.SplitText, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.readSplit(ctx); err != nil {
		return nil, 0, p.named(err)
	}
	want := model.WantLengths
	if p.split == nil {
		want = model.WantLines
		if err := p.read(ctx, want); err != nil {
			return nil, 0, p.named(err)
		}
	}
	if err := p.fill(index, want, dst); err != nil || p.split == nil {
		return nil, 0, err
	}
	return &p.split.SplitText, int(p.unit.Begins[index]), nil
}

// readSplit reads the unit, and its lines as they are stored, unless it has them or they cannot be split.
func (p *page) readSplit(ctx context.Context) error {
	if err := p.readUnit(ctx, model.WantLines); err != nil {
		return err
	}
	pages, ok := p.r.Pages().(StoredPages)
	// A unit without a filter is young, and has no columns. One whose lines are all empty has no page of lines.
	if !ok || p.split != nil || p.unit.lines != nil || p.e.Text.Filter.Len == 0 || p.e.Text.Lines.Len == 0 || pages.HasDecoded(p.e.Text.Lines) {
		return nil
	}
	stored, err := pages.Stored(ctx, p.e.Text.Lines)
	if err != nil {
		return fmt.Errorf("part: lines: page at %d: %w", p.e.Text.Lines.Off, err)
	}
	if !lines.Splits(stored) {
		return nil
	}
	s, err := lines.OpenSplit(stored, len(p.unit.ends), p.unit.lineBytes())
	if err != nil {
		return fmt.Errorf("part: lines: page at %d: %w", p.e.Text.Lines.Off, err)
	}
	if err := p.charge(int64(s.Size())); err != nil {
		s.Release()
		return err
	}
	p.split = s
	return nil
}
