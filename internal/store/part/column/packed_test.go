package column

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlainDecimals compares with the way in three passes, of any column, written by no coder of ours: any
// width, divisor and number of residuals, cut short or not.
func TestPlainDecimals(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(0, maxExponent).Draw(t, "k")
		width := uint(rapid.IntRange(0, 64).Draw(t, "width"))
		kind := IntsPacked | rapid.SampledFrom([]byte{0, IntsDelta, intsDivisor, IntsDelta | intsDivisor, intsExceptions, intsRadix}).Draw(t, "kind")
		column := []byte{kind}
		residuals := n
		if kind&IntsDelta != 0 {
			column = binary.AppendVarint(column, rapid.Int64().Draw(t, "first"))
			residuals--
		}
		column = binary.AppendVarint(column, rapid.Int64().Draw(t, "base"))
		if kind&intsDivisor != 0 {
			column = binary.AppendUvarint(column, rapid.SampledFrom([]uint64{0, 1, 7, 1 << 63}).Draw(t, "divisor"))
		}
		column = append(column, byte(width))
		for range packedLen(residuals, width) {
			column = append(column, rapid.Byte().Draw(t, "byte"))
		}
		column = append(column, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "behind")...)
		if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
			column = column[:rapid.IntRange(0, len(column)).Draw(t, "at")]
		}
		s := Scan{Rest: column}
		got, ok := plainDecimals([]uint64{7}, &s, n, k)
		if !ok {
			if len(got) != 1 || len(s.Rest) != len(column) || s.Bad {
				t.Fatalf("not taken, and yet %d of %d bytes were read", len(column)-len(s.Rest), len(column))
			}
			return
		}
		taken++
		other := Scan{Rest: column}
		want := []uint64{7}
		for _, x := range new(IntDecoder).Append(nil, &other, n) {
			want = append(want, decimalValue(x, k))
		}
		if other.Bad || len(other.Rest) != len(s.Rest) || !slices.Equal(got, want) {
			t.Fatalf("%x, %d left, want %x, %d left (bad: %t)", got, len(s.Rest), want, len(other.Rest), other.Bad)
		}
	})
	if taken == 0 {
		t.Error("no column was plain")
	}
}
