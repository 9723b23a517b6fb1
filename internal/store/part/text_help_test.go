package part

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/shaledb/shale/internal/model"
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

var textSizes = sizes{
	page: pageBytes, index: pageBytes, text: unitBytes, slice: sliceBytes, filters: filterBytes, textRows: maxUnitRows, ties: maxTies,
}

// textSections are those of a file of which only the text is filled.
var textSections = func() (l sectionList) {
	for i := range 7 {
		l = append(l, &section{number: i})
	}
	l[textSection.number] = textSection
	return l
}()

// textPart is a file of text alone.
type textPart struct{ *fileReader }

func (p textPart) Bind(pages Pages) textPart { return textPart{p.fileReader.Bind(pages)} }

func (p textPart) TextAt(ctx context.Context, req *model.Request, known *TextVerdicts, order uint64, named func(error) error) *TextCursor {
	return newTextCursor(ctx, p.fileReader, req, known, order, named)
}

func (p textPart) FetchText(ctx context.Context, ranks Ranks, req *model.Request) (*TextVerdicts, error) {
	return prefetchText(ctx, p.fileReader, ranks, req)
}

// textPages decode pages of a buffer.
type textPages struct{ fetch Fetch }

func (p textPages) Page(ctx context.Context, a Addr) ([]byte, error) {
	return p.fetch(ctx, a, DecodePage)
}

// textPartWriter writes a file of text of one tenant.
type textPartWriter struct {
	file *fileWriter
	text *textWriter
	buf  bytes.Buffer
}

func newTextPart(dense bool, z sizes) *textPartWriter {
	w := &textPartWriter{}
	m := Meta{Signal: model.Logs, Sources: []Source{{Node: "n"}}}
	w.file = newFileWriter(&w.buf, m, textSections, dense, z)
	w.text = newTextWriter(w.file)
	w.file.BeginTenant("t")
	return w
}

func (w *textPartWriter) Series() error {
	err := w.text.endText()
	w.file.BeginSeries()
	return err
}

func (w *textPartWriter) Text(ctx context.Context, texts []Text, clip model.TimeRange) error {
	return w.text.mergeText(ctx, texts, clip)
}

func (w *textPartWriter) finish(t testing.TB) textPart {
	t.Helper()
	textMust(t, w.text.flushText())
	w.file.EndTenant()
	size, err := w.file.Finish()
	textMust(t, err)
	b := bytes.NewReader(w.buf.Bytes())
	r, err := openFile(context.Background(), textPages{FetchFile(b, nil)}, RangeOf(b), size, textSections)
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
