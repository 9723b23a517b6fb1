package worldtest

import (
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Row is a row of any family, as a value that can be compared.
type Row struct {
	At, Start int64
	Kind      model.Kind
	Bits      uint64 // of a float
	Blob      string // of every other kind
}

// Float returns a sample from the bits of a float.
func Float(at int64, bits uint64) Row { return Row{At: at, Bits: bits} }

// HistogramRow returns a sample that is a histogram.
func HistogramRow(at int64, h *model.Histogram) Row {
	return Row{At: at, Kind: model.KindHistogram, Blob: string(model.AppendHistogram(nil, h))}
}

// ExemplarRow returns the row of an exemplar.
func ExemplarRow(at int64, e *model.Exemplar) Row {
	return Row{At: at, Kind: model.KindExemplar, Blob: string(model.AppendExemplar(nil, e))}
}

// LineRow returns the row of a line.
func LineRow(at int64, l *model.Line) Row {
	return Row{At: at, Kind: model.KindText, Blob: string(model.AppendLine(nil, l))}
}

// RowAt returns row i of rows.
func RowAt(rows *model.Rows, i int) Row {
	r := Row{At: rows.Times[i], Start: rows.Start(i), Kind: rows.Kind(i)}
	if r.Kind == model.KindFloat {
		r.Bits = rows.Values[i]
	} else {
		r.Blob = string(rows.Blob(i))
	}
	return r
}

// TextRowAt returns row i of rows, which hold lines and metadata.
func TextRowAt(rows *model.TextRows, i int) Row {
	return LineRow(rows.Times[i], &model.Line{Text: rows.Line(i), Metadata: rows.MetadataAt(i)})
}

// AppendTo appends the row to rows of its family.
func (r Row) AppendTo(rows *model.Rows) {
	if r.Kind == model.KindFloat {
		rows.Append(r.At, r.Bits, r.Start)
	} else {
		rows.AppendBlob(r.At, r.Kind, []byte(r.Blob), r.Start)
	}
}

// Family returns the family of the row's kind.
func (r Row) Family() model.Family {
	switch r.Kind {
	case model.KindExemplar:
		return model.Exemplars
	case model.KindText:
		return model.Text
	}
	return model.Samples
}

// IsStale reports whether the row is a stale marker.
func (r Row) IsStale() bool {
	var rows model.Rows
	r.AppendTo(&rows)
	return rows.IsStale(0)
}

// String shows the row, a long value by its beginning and length.
func (r Row) String() string {
	if r.Kind == model.KindFloat {
		return fmt.Sprintf("{%d %d %016x}", r.At, r.Start, r.Bits)
	}
	return fmt.Sprintf("{%d %d %d %.60q of %d}", r.At, r.Start, r.Kind, r.Blob, len(r.Blob))
}

// SameRows compares rows bit for bit. An unknown start may be missing or zero.
func SameRows(a, b *model.Rows) bool {
	if !slices.Equal(a.Times, b.Times) {
		return false
	}
	for i := range a.Times {
		if a.Start(i) != b.Start(i) || !a.Same(i, b, i) {
			return false
		}
	}
	return true
}
