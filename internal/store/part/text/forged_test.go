package text

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// forgedIndex changes the entries of an index page.
type forgedIndex struct {
	file.Pages
	at    file.Addr
	forge func([]file.Entry)
}

func (f *forgedIndex) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	b, err := f.Pages.Page(ctx, a)
	if err != nil || a != f.at {
		return b, err
	}
	entries, err := file.ReadIndexPage(nil, b, Section, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	f.forge(entries)
	x := file.IndexWriter{Section: Section}
	for i := range entries {
		x.Add(entries[i])
	}
	return x.Payload(nil), nil
}

// TestForgedEntries: entries that lead to a wrong page of lines, or to none, are refused by queries and by
// merges that copy units.
func TestForgedEntries(t *testing.T) {
	const series = 4
	z := formatSizes
	z.TextBytes = 32 << 10
	w := newPart(true, z)
	for s := range series {
		parttest.Must(t, w.Series())
		parttest.Must(t, w.Text(context.Background(), []Series{OfRows(worldtest.JSONLines(4*z.TextBytes, int64(s)))}, model.Always()))
	}
	r := w.finish(t)
	index := r.Index(Section)
	if len(index) != 1 {
		t.Fatalf("%d index pages", len(index))
	}
	for name, forge := range map[string]func(e []file.Entry){
		"as they are": func([]file.Entry) {},
		"no lines":    func(e []file.Entry) { e[2].Text.Lines = file.Addr{} },
		"no bytes":    func(e []file.Entry) { e[2].Text.Bytes = 0 },
		"fewer bytes": func(e []file.Entry) { e[2].Text.Bytes-- },
		"lines of the next unit": func(e []file.Entry) {
			for i := range e[1:] {
				e[i].Text.Lines = e[i+1].Text.Lines
			}
			e[len(e)-1].Text.Lines = e[0].Text.Filter
		},
		"rows as lines": func(e []file.Entry) { e[0].Text.Lines = e[1].Addr },
		"long":          func(e []file.Entry) { e[2].Text.Lines.Len = 16 << 20 },
		"short":         func(e []file.Entry) { e[2].Text.Lines.Len = 1 },
		"at the end":    func(e []file.Entry) { e[len(e)-1].Text.Lines.Off = r.FooterOff() - 3 },
		"beyond":        func(e []file.Entry) { e[len(e)-1].Text.Lines.Off = math.MaxInt64 - 5 },
	} {
		forged := r.Bind(&forgedIndex{Pages: r.Pages(), at: index[0].Addr, forge: forge})
		for what, err := range map[string]error{"query": readLines(forged, series), "merge": copyUnits(forged, series, z)} {
			if name == "as they are" {
				parttest.Must(t, err)
			} else if !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// readLines reads all lines in a query.
func readLines(r part, series int) error {
	req := &model.Request{Range: model.Always(), Quota: &model.Quota{}, Cost: &model.Cost{}}
	cursor := r.TextAt(context.Background(), req, nil, 0, unnamed)
	for rank := range series {
		chunks, err := cursor.Chunks(context.Background(), uint32(rank), nil)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			var rows model.TextRows
			if err := c.Page.ReadText(context.Background(), c.Index, model.WantLines, &rows); err != nil {
				return err
			}
			for i := range rows.Times {
				rows.Line(i)
			}
		}
	}
	return nil
}

// copyUnits copies all units to another file.
func copyUnits(r part, series int, z file.Sizes) error {
	from, to := NewStream(r.Reader), newPart(true, z)
	for rank := range series {
		if err := errors.Join(from.Seek(context.Background(), uint32(rank)), to.Series()); err != nil {
			return err
		}
		if err := to.Text(context.Background(), []Series{from}, model.Always()); err != nil {
			return err
		}
	}
	return to.text.flushText()
}
