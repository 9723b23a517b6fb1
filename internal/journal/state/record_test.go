package state

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
)

// TestRecords: what is encoded is decoded, and what is damaged, out of bounds or of a later version is not.
func TestRecords(t *testing.T) {
	p := Partition{Epoch: 3, Number: 7}
	for _, r := range []interface{ Encode() (string, []byte) }{
		&Forget{p, 12}, &Series{p, map[string]int64{"a": 1, "": 0}, true, map[string]Filter{"a": NewFilter(3)}},
		&Leader{"t", "eu/1 %", "a", true, -1, 5, -7, 8, "p", -9}, &NoLeader{"t", ""}, &Covered{p, 7},
		&Groups{p, map[string]TenantGroups{"a": {Metrics: map[string]int64{"x": 3}, Sets: []int64{0, 4}, Text: "y"}}},
	} {
		key, value := r.Encode()
		got, err := Decode(key, value)
		if d := cmp.Diff(r, got); d != "" || err != nil {
			t.Error(err, d)
		}
	}
	for _, x := range []struct {
		key, value string
		unknown    bool
	}{
		{"ha/t", "", false}, {"ha/t/%zz", "", false}, {"ha/t/%61", "", false}, {"ha/t/c", `{"version":2}`, true}, {"ha/t/c", `[]`, false},
		{"ha/t/c", `{"version":1,"after":-2}`, false}, {"ha/t/" + strings.Repeat("c", 257), `{"version":1}`, false},
		{"groups/3/7", `{"version":1,"tenants":{"a":{"sets":[-1]}}}`, false}, {"groups/3/7", `{"version":1,"tenants":{"a":{"metrics":{"x":-1}}}}`, false},
		{"groups/3/7", `{"version":1,"tenants":{"a":{"sets":[` + strings.Repeat("0,", maxSets) + `0]}}}`, false}, {"groups/3", `{"version":1}`, false},
		{"covered/3/7", `{"version":1,"next":-1}`, false}, {"covered/3", `{"version":1}`, false},
		{"later/3/7", "{}", true}, {"forget/3/7", `{"version":2,"since":"soon"}`, true}, {"forget/3/7", ``, false},
		{"forget/3/-1", `{"version":1}`, false}, {"forget/3/07", `{"version":1}`, false}, {"forget/3", `{"version":1}`, false},
		{"forget/3/7", `{"version":1,"since":-1}`, false}, {"series/3/7", `{"version":1,"active":{"a":-1}}`, false},
		{"series/3/7", `{"version":1,"active":[]}`, false}, {"series/3/7", `{"version":1,"known":{"a":"AAAA"}}`, false}, {"forget/3/7", `{"version":1}` + strings.Repeat(" ", maxValue), false},
	} {
		_, err := Decode(x.key, []byte(x.value))
		if errors.Is(err, ErrUnknown) != x.unknown || !x.unknown && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s %.40s: %v", x.key, x.value, err)
		}
	}
}

// FuzzDecode: whatever a record has, decoding ends with a record that is encoded to the same again, or with
// an error of a known class.
func FuzzDecode(f *testing.F) {
	f.Add("forget/1/0", []byte(`{"version":1,"since":5}`))
	f.Add("series/1/15", []byte(`{"version":1,"active":{"a":3}}`))
	f.Add("ha/t/eu%2F1", []byte(`{"version":1,"replica":"a","after":5}`))
	f.Add("series/1/x", []byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		got, err := Decode(key, value)
		if err != nil {
			if !errors.Is(err, ErrUnknown) && !errors.Is(err, model.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		k, v := got.(interface{ Encode() (string, []byte) }).Encode()
		again, err := Decode(k, v)
		if d := cmp.Diff(got, again); k != key || err != nil || d != "" {
			t.Error(k, err, d)
		}
	})
}
