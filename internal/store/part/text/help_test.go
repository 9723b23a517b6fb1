package text

import (
	"bytes"
	"context"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

func unnamed(err error) error { return err }

var formatSizes = file.Sizes{
	PageBytes: file.PageBytes, IndexBytes: file.PageBytes, TextBytes: UnitBytes, SliceBytes: SliceBytes, FilterBytes: FilterBytes, GroupBytes: GroupBytes, TextRows: MaxUnitRows, Ties: MaxTies,
}

// sections are those of a file of which only the text is filled.
var sections = func() (l file.Sections) {
	for i := range 7 {
		l = append(l, &file.Section{Number: i})
	}
	l[Section.Number] = Section
	return l
}()

// part is a file of text alone.
type part struct{ *file.Reader }

func (p part) Bind(pages file.Pages) part { return part{p.Reader.Bind(pages)} }

func (p part) TextAt(ctx context.Context, req *model.Request, known *Verdicts, order uint64, named func(error) error) *Cursor {
	return NewCursor(ctx, p.Reader, req, known, order, named)
}

func (p part) PrefetchChunks(ctx context.Context, ranks file.Ranks, req *model.Request) (*Verdicts, error) {
	return Prefetch(ctx, p.Reader, ranks, req)
}

// bufferPages decode pages of a buffer.
type bufferPages struct{ fetch file.Fetch }

func (p bufferPages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	return p.fetch(ctx, a, lines.DecodePage)
}

// partWriter writes a file of text of one tenant.
type partWriter struct {
	file *file.Writer
	text *Writer
	buf  bytes.Buffer
}

func newPart(dense bool, z file.Sizes) *partWriter {
	w := &partWriter{}
	m := file.Meta{Signal: model.Logs, Sources: []file.Source{{Node: "n"}}}
	w.file = file.NewWriter(&w.buf, m, sections, dense, z)
	w.text = NewWriter(w.file)
	w.file.BeginTenant("t")
	return w
}

func (w *partWriter) Series() error {
	err := w.text.endText()
	w.file.BeginSeries()
	return err
}

func (w *partWriter) Text(ctx context.Context, texts []Series, clip model.TimeRange) error {
	return w.text.Merge(ctx, texts, clip)
}

func (w *partWriter) finish(t testing.TB) part {
	t.Helper()
	parttest.Must(t, w.text.flushText())
	w.file.EndTenant()
	size, err := w.file.Finish()
	parttest.Must(t, err)
	b := bytes.NewReader(w.buf.Bytes())
	r, err := file.Open(context.Background(), bufferPages{file.FetchFile(b, nil)}, file.RangeOf(b), size, sections)
	parttest.Must(t, err)
	return part{r}
}

// appendRow adds a row.
func appendRow(rows *model.TextRows, at int64, line string, metadata model.Labels) {
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
