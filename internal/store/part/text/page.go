package text

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// page is a unit of text in a query.
type page struct {
	r        *file.Reader
	e        file.Entry
	req      *model.Request
	verdicts *Verdicts
	// named gives an error the name of the part.
	named func(error) error

	mu sync.Mutex
	// unit is nil until it is read, and so are its lines.
	unit *unit
	// split are its lines as they are stored; nil unless a query has asked for them.
	split   *lines.Split
	charged int64
	end     int64 // of that, for the end of the lines
	asked   bool  // for the filter
	skipped bool
}

// textRowBytes is the memory of a row of a decoded unit, apart from its line and its metadata.
const textRowBytes = 40

// Skip reports whether the filter rules out all lines of the page.
func (p *page) Skip(ctx context.Context) (bool, error) {
	if p.verdicts == nil || p.e.Text.Filter.Len == 0 {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked {
		return p.skipped, nil
	}
	var err error
	if p.skipped, err = p.verdicts.ask(ctx, p.e.Text.Filter, p.e.Text.Number); err != nil {
		return false, p.named(fmt.Errorf("page at %d: %w", p.e.Text.Filter.Off, err))
	}
	if p.asked = true; p.skipped {
		p.req.Cost.TextPagesSkipped.Add(1)
	}
	return p.skipped, nil
}

// ReadText fills dst with the rows of a chunk. Lines and metadata alias the page, the other columns are
// copied.
func (p *page) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.read(ctx, want); err != nil {
		return p.named(err)
	}
	return p.fill(index, want, dst)
}

// fill fills dst with the columns of a chunk that have been read.
func (p *page) fill(index int, want model.TextWant, dst *model.TextRows) error {
	if uint64(index) >= uint64(len(p.unit.Counts)) {
		return column.Invalid("text: no chunk %d", index)
	}
	var rows model.TextRows
	p.unit.view(index, &rows)
	dst.Reset()
	dst.Times = append(dst.Times, rows.Times...)
	if want&model.WantLines != 0 {
		dst.Bytes = rows.Bytes
	}
	if want&(model.WantLines|model.WantLengths) != 0 {
		dst.Begin = rows.Begin
		dst.Ends = append(dst.Ends, rows.Ends...)
	}
	if want&model.WantMetadata != 0 {
		appendMetadata(dst, &rows, len(p.unit.Counts) > 1)
	}
	return nil
}

// appendMetadata copies the sets of src that the rows refer to. If they refer to all sets, it copies them as
// they are.
func appendMetadata(dst, src *model.TextRows, some bool) {
	if !some {
		dst.Metadata, dst.MetadataOf = append(dst.Metadata, src.Metadata...), append(dst.MetadataOf, src.MetadataOf...)
		return
	}
	ids := make(map[uint32]uint32)
	for k, id := range src.MetadataOf {
		if id == 0 {
			continue
		}
		n, ok := ids[id]
		if !ok {
			dst.Metadata = append(dst.Metadata, src.Metadata[id-1])
			n = uint32(len(dst.Metadata))
			ids[id] = n
		}
		for len(dst.MetadataOf) < k {
			dst.MetadataOf = append(dst.MetadataOf, 0)
		}
		dst.MetadataOf = append(dst.MetadataOf, n)
	}
	for len(dst.Metadata) > 0 && len(dst.MetadataOf) < len(src.Times) {
		dst.MetadataOf = append(dst.MetadataOf, 0)
	}
}

// read reads the unit and, if they are wanted, its lines, unless it has them.
func (p *page) read(ctx context.Context, want model.TextWant) error {
	wantsLines := want&model.WantLines != 0 && p.e.Text.Lines.Len > 0
	if err := p.readUnit(ctx, want&^model.WantNewest); err != nil {
		return err
	}
	if !wantsLines || p.unit.lines != nil {
		return nil
	}
	_ = p.holdEnd(0) // giving back does not fail
	if err := p.charge(int64(p.e.Text.Bytes)); err != nil {
		return err
	}
	var payload []byte
	var err error
	if p.split != nil {
		payload, err = p.split.Decode()
	} else {
		payload, err = p.r.Page(ctx, p.e.Text.Lines)
	}
	if err == nil {
		err = p.unit.setLines(payload)
	}
	if err != nil {
		_ = p.charge(-int64(p.e.Text.Bytes)) // giving back does not fail
		return fmt.Errorf("part: lines: page at %d: %w", p.e.Text.Lines.Off, err)
	}
	return nil
}

// readUnit reads the unit, unless it has it, before other wanted pages. A caller that wants nothing but times
// or lengths of lines gets it without the other columns, whose decoding may cost as much as all the rest. A
// caller that wants more then reads it a second time.
func (p *page) readUnit(ctx context.Context, want model.TextWant) error {
	wanted := columnsOf(want)
	if p.unit != nil {
		if p.unit.columns <= wanted {
			return nil
		}
		p.forget()
	}
	if p.readsLines(want) {
		// One request reads both if they are near each other.
		if announce := announceText(ctx, p.r); announce != nil {
			announce([]file.Addr{p.e.Addr, p.e.Text.Lines})
		}
	}
	return p.readRows(ctx, wanted)
}

// readsLines reports whether the page of lines will be read for what is wanted.
func (p *page) readsLines(want model.TextWant) bool {
	if want&model.WantLines == 0 || p.e.Text.Lines.Len == 0 || p.unit != nil && p.unit.lines != nil || p.split != nil {
		return false
	}
	if want&model.WantNewest == 0 {
		return true
	}
	ends, ok := p.r.Pages().(Ends)
	return !ok || !ends.HasEnd(p.e.Text.Lines)
}

func (p *page) readRows(ctx context.Context, c columns) error {
	size := int64(p.e.Rows) * textRowBytes
	if p.e.Rows > MaxUnitRows {
		return file.AtPage(p.e.Addr, column.Corrupt("text: %d rows", p.e.Rows))
	}
	before := p.charged
	if err := p.charge(size); err != nil {
		return err
	}
	u := newUnit(c)
	u.sets.charge = p.charge
	payload, err := p.r.Page(ctx, p.e.Addr)
	if err == nil {
		err = u.decode(payload)
	}
	if err == nil {
		err = u.checkEntry(&p.e)
	}
	if err == nil {
		if c == allColumns {
			u.shrink()
		}
		p.unit = u
		return nil
	}
	u.release()
	_ = p.charge(before - p.charged) // giving back does not fail
	return fmt.Errorf("part: text: %w", file.AtPage(p.e.Addr, err))
}

func (p *page) charge(n int64) error {
	if err := p.req.Quota.TakeBytes(n); err != nil {
		return err
	}
	p.charged += n
	return nil
}

// Release releases the memory of the page.
func (p *page) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
}

// forget gives up the unit.
func (p *page) forget() {
	if p.unit != nil {
		p.unit.release()
	}
	if p.split != nil {
		p.split.Release()
	}
	p.unit, p.split, p.end = nil, nil, 0
	_ = p.charge(-p.charged) // giving back does not fail
}
