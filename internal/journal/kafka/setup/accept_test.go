package setup

import (
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/journal/kafka"
)

// TestParseLoss: what is not a partition with ascending offsets is a mistake in the command line.
func TestParseLoss(t *testing.T) {
	for text, want := range map[string]loss{"3:100-250": {Partition: 3, From: 100, To: 250}, "0:7": {From: 7, To: 7}} {
		if got, err := parseLoss(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "3:", "3:5-", "3:-5", "-1:5", "3:9-5", "3:5-6-7", "x:1-2", "99999999999:1", "3:1-9223372036854775807"} {
		if got, err := parseLoss(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestLossIsExact: only records that are missing are given up as a range, all of them, from where the bucket
// is.
func TestLossIsExact(t *testing.T) {
	has := kafka.Extent{Start: 50, End: 90}
	for _, x := range []struct {
		from, to, shipped int64
		want              string // a part of the error; empty: none
	}{
		{40, 49, 40, ""}, {60, 60, 60, ""}, {50, 50, 50, ""},
		{41, 49, 40, "begins there"}, {39, 49, 40, "begins there"},
		{40, 45, 40, "exactly these, use 0:40-49"}, {40, 50, 40, "exactly these, use 0:40-49"},
		{60, 61, 60, "one at a time, with 0:60"},
		{60, 90, 60, "no record 90 yet"}, {90, 90, 90, "no record 90 yet"},
	} {
		l := loss{From: x.from, To: x.to}
		err := l.check(has, x.shipped)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
