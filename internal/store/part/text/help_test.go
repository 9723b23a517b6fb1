package text

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

func textMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// textAllocated returns how many bytes f allocates.
func textAllocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

var textAnyTime = model.TimeRange{Min: -1 << 63, Max: 1<<63 - 1}

func textUnnamed(err error) error { return err }

var textSizes = file.Sizes{
	PageBytes: file.PageBytes, IndexBytes: file.PageBytes, TextBytes: UnitBytes, SliceBytes: SliceBytes, FilterBytes: FilterBytes, TextRows: MaxUnitRows, Ties: MaxTies,
}

// textSections are those of a file of which only the text is filled.
var textSections = func() (l file.Sections) {
	for i := range 7 {
		l = append(l, &file.Section{Number: i})
	}
	l[Section.Number] = Section
	return l
}()

// textPart is a file of text alone.
type textPart struct{ *file.Reader }

func (p textPart) Bind(pages file.Pages) textPart { return textPart{p.Reader.Bind(pages)} }

func (p textPart) TextAt(ctx context.Context, req *model.Request, known *Verdicts, order uint64, named func(error) error) *Cursor {
	return NewCursor(ctx, p.Reader, req, known, order, named)
}

func (p textPart) FetchText(ctx context.Context, ranks file.Ranks, req *model.Request) (*Verdicts, error) {
	return Prefetch(ctx, p.Reader, ranks, req)
}

// textPages decode pages of a buffer.
type textPages struct{ fetch file.Fetch }

func (p textPages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	return p.fetch(ctx, a, lines.DecodePage)
}

// textPartWriter writes a file of text of one tenant.
type textPartWriter struct {
	file *file.Writer
	text *Writer
	buf  bytes.Buffer
}

func newTextPart(dense bool, z file.Sizes) *textPartWriter {
	w := &textPartWriter{}
	m := file.Meta{Signal: model.Logs, Sources: []file.Source{{Node: "n"}}}
	w.file = file.NewWriter(&w.buf, m, textSections, dense, z)
	w.text = NewWriter(w.file)
	w.file.BeginTenant("t")
	return w
}

func (w *textPartWriter) Series() error {
	err := w.text.endText()
	w.file.BeginSeries()
	return err
}

func (w *textPartWriter) Text(ctx context.Context, texts []Series, clip model.TimeRange) error {
	return w.text.Merge(ctx, texts, clip)
}

func (w *textPartWriter) finish(t testing.TB) textPart {
	t.Helper()
	textMust(t, w.text.flushText())
	w.file.EndTenant()
	size, err := w.file.Finish()
	textMust(t, err)
	b := bytes.NewReader(w.buf.Bytes())
	r, err := file.Open(context.Background(), textPages{file.FetchFile(b, nil)}, file.RangeOf(b), size, textSections)
	textMust(t, err)
	return textPart{r}
}

// textAppend adds a row.
func textAppend(rows *model.TextRows, at int64, line string, metadata model.Labels) {
	rows.Bytes = append(rows.Bytes, line...)
	rows.Times, rows.Ends = append(rows.Times, at), append(rows.Ends, uint32(len(rows.Bytes)))
	if metadata != nil {
		for len(rows.MetadataOf) < len(rows.Times) {
			rows.MetadataOf = append(rows.MetadataOf, 0)
		}
		rows.Metadata = append(rows.Metadata, metadata)
		rows.MetadataOf[len(rows.Times)-1] = uint32(len(rows.Metadata))
	}
}
