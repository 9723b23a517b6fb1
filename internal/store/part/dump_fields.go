package part

import (
	"fmt"
	"io"
)

// dumpFields shows the inside of a page of lines that is taken apart.
func dumpFields(w io.Writer, stored []byte) {
	if len(stored) <= envelopeMin || stored[0] != codecLines {
		return
	}
	s := scan{b: stored[1 : len(stored)-crcBytes]}
	s.uvarint()
	a := newAnnotator(w, s.b)
	var hard []byte
	a.show(func() string { hard = a.s.bytes(); return fmt.Sprintf("%d bytes of hexadecimal digits", len(hard)) })
	if a.s.bad || len(a.s.b) == 0 || a.s.b[0] == codecLines {
		return
	}
	begin := len(a.payload) - len(a.s.b)
	fmt.Fprintf(w, "  %06d: # columns, as a page of %d bytes, whose payload is\n", begin, len(a.s.b))
	payload, err := openPage(a.s.b, maxPageBytes-1)
	if err != nil {
		fmt.Fprintf(w, "  %v\n", err)
		return
	}
	a = newAnnotator(w, payload)
	columns := a.uvarint("columns")
	var lens []int64
	for i := uint64(0); i < min(columns, maxFieldColumns) && !a.s.bad; i++ {
		lens = append(lens, dumpField(a, i)...)
	}
	for i, l := range lens {
		a.show(func() string { return fmt.Sprintf("fragment %d: %q", i, a.s.take(uint64(l))) })
	}
	a.end()
	fmt.Fprintf(w, "  the lines\n")
}

// dumpField shows a column and returns the lengths of what may follow it.
func dumpField(a *annotator, i uint64) []int64 {
	names := [...]string{"beginnings of lines", "numbers", "digits", "hexadecimal", "upper hexadecimal", "strings", "dates", "times of day"}
	kind := byte(0)
	a.show(func() string {
		kind = a.s.byte()
		return fmt.Sprintf("column %d: %s", i, append(names[:], "unknown")[min(int(kind), len(names))])
	})
	if kind >= fieldDigits && kind <= fieldHexUp {
		a.raw(1, "digits")
	}
	visits := int(min(a.uvarint("values"), maxPageBytes))
	entries := int(min(a.uvarint("fragments that follow"), uint64(visits)))
	lens := a.column(entries, "their lengths")
	a.column(entries, "columns behind them, 0: the line ends")
	if entries > 1 {
		a.column(visits, "which one follows")
	}
	switch kind {
	case fieldNumber, fieldDigits, fieldDate, fieldClock:
		a.column(visits, "values")
	case fieldString:
		for _, l := range a.column(visits, "lengths") {
			a.raw(uint64(l), "string")
		}
	}
	return lens
}
