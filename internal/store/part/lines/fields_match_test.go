package lines

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzMatch compares the fast paths of the coder, which read a value of the kind and length of a column in
// one loop, with kindOf, fieldOf and keep: they must accept the same values and store the same. Otherwise
// pages stay readable, but filters could miss items.
func FuzzMatch(f *testing.F) {
	for _, text := range []string{
		"12", "012", "3.14159", "4,200", "17ms", "10:20:30", "10:20:61", "10:20", "2026-11-23", "2026-11-23T", "2026", "1", "a",
		"deadbeef", "DEADBEEF", "dEadbeef", "4bf92f3577b34da6a3ce929d0e0e4736", "4BF92F3577B34DA6A3CE929D0E0E4736", "beef", "12ab", "12AB", "12ag",
		"123456789012345678", "1234567890123456789", "0000000000000000000", "99999999999999999999999999999999999999999999999999999999999999999",
		"12 ", "12\x00", "12\xff", "deadbee\xc3\xa9", "12345678/", "1234567890123456789:", "0x12", "12-34",
	} {
		f.Add([]byte(text), byte(len(text)), byte(' '))
		f.Add([]byte(text), byte(2), byte('.'))
	}
	f.Fuzz(func(t *testing.T, b []byte, n, before byte) {
		if len(b) == 0 {
			return
		}
		const at = 1
		if b = append([]byte{before}, b...); runClass[before] != 0 {
			b[0] = ' ' // a value begins after a byte that is in no run
		}
		or, end := byte(0), at
		for ; end < len(b) && runClass[b[end]] != 0; end++ {
			or |= runClass[b[end]]
		}
		kind, digits, end := fieldOf(b, at, end, kindOf(b[at:end], or))

		columns := []fieldColumn{{kind: fieldNumber}, {kind: fieldDigits, n: 2 + int(n)%(maxFieldDigits-1)}}
		for _, kind := range []byte{fieldHex, fieldHexUp} {
			columns = append(columns, fieldColumn{kind: kind, n: minFieldHex + int(n)%(maxFieldHex-minFieldHex+1)})
		}
		if kind == fieldDigits || kind == fieldHex || kind == fieldHexUp {
			columns = append(columns, fieldColumn{kind: kind, n: digits})
		}
		for _, c := range columns {
			fast, slow := c, c
			match := fast.matchDigits
			if c.kind == fieldHex || c.kind == fieldHexUp {
				match = fast.matchHex
			}
			got, ok := match(b, at)
			want := kind == c.kind && digits == c.n
			if want {
				slow.keep(b[at:end])
			}
			if ok != want || ok && got != end {
				t.Fatalf("%q, column of kind %d and %d digits: ends at %d, %t; want %d, %t", b, c.kind, c.n, got, ok, end, want)
			}
			if !slices.Equal(fast.numbers, slow.numbers) || !bytes.Equal(fast.bytes, slow.bytes) {
				t.Fatalf("%q, column of kind %d and %d digits: stored %v %x, want %v %x", b, c.kind, c.n, fast.numbers, fast.bytes, slow.numbers, slow.bytes)
			}
		}
	})
}
