package lines

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Dump shows the inside of a page of lines that is stored as columns.
func Dump(w io.Writer, stored []byte) {
	if len(stored) <= file.EnvelopeMin || stored[0] != Codec {
		return
	}
	s := column.Scan{Rest: stored[1 : len(stored)-file.ChecksumBytes]}
	s.Uvarint()
	a := file.NewAnnotator(w, s.Rest)
	var hard []byte
	a.Show(func() string { hard = a.Scan.Bytes(); return fmt.Sprintf("%d bytes of hexadecimal digits", len(hard)) })
	if a.Scan.Bad || len(a.Scan.Rest) == 0 || a.Scan.Rest[0] == Codec {
		return
	}
	begin := len(a.Payload) - len(a.Scan.Rest)
	fmt.Fprintf(w, "  %06d: # columns, as a page of %d bytes, whose payload is\n", begin, len(a.Scan.Rest))
	payload, err := file.OpenPage(a.Scan.Rest, file.MaxPageBytes-1)
	if err != nil {
		fmt.Fprintf(w, "  %v\n", err)
		return
	}
	a = file.NewAnnotator(w, payload)
	columns := a.Uvarint("columns")
	var lens []int64
	for i := uint64(0); i < min(columns, maxFieldColumns) && !a.Scan.Bad; i++ {
		lens = append(lens, dumpField(a, i)...)
	}
	for i, l := range lens {
		a.Show(func() string { return fmt.Sprintf("fragment %d: %q", i, a.Scan.Next(uint64(l))) })
	}
	a.End()
	fmt.Fprintf(w, "  the lines\n")
}

// dumpField shows a column and returns the lengths of the fragments that may follow it.
func dumpField(a *file.Annotator, i uint64) []int64 {
	names := [...]string{"beginnings of lines", "numbers", "digits", "hexadecimal", "upper hexadecimal", "strings", "dates", "times of day"}
	kind := byte(0)
	a.Show(func() string {
		kind = a.Scan.Byte()
		return fmt.Sprintf("column %d: %s", i, append(names[:], "unknown")[min(int(kind), len(names))])
	})
	if kind >= fieldDigits && kind <= fieldHexUp {
		a.Raw(1, "digits")
	}
	visits := int(min(a.Uvarint("values"), file.MaxPageBytes))
	entries := int(min(a.Uvarint("fragments that follow"), uint64(visits)))
	lens := a.Column(entries, "their lengths")
	a.Column(entries, "columns after them, 0: the line ends")
	if entries > 1 {
		a.Column(visits, "which one follows")
	}
	switch kind {
	case fieldNumber, fieldDigits, fieldDate, fieldClock:
		a.Column(visits, "values")
	case fieldString:
		for _, l := range a.Column(visits, "lengths") {
			a.Raw(uint64(l), "string")
		}
	}
	return lens
}
