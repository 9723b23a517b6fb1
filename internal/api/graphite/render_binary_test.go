package graphite

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/http/httptest"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// FuzzBinary: both binary formats are read back as the series that were written, bit for bit.
func FuzzBinary(f *testing.F) {
	f.Add("a.b", "a.*", "average", int64(1_700_000_000), int64(60), 0.5, binary.BigEndian.AppendUint64(nil, math.Float64bits(1)))
	f.Add("größe;dc=eu", "", "", int64(math.MinInt64), int64(math.MaxInt64), math.Inf(1), binary.BigEndian.AppendUint64(make([]byte, 8), math.Float64bits(math.NaN())))
	f.Add("\xff\x00", "(", "\n", int64(math.MaxInt32)+1, int64(-1), math.Copysign(0, -1), []byte{})
	f.Fuzz(func(t *testing.T, name, path, consolidation string, start, step int64, xff float64, bits []byte) {
		var values []float64
		for ; len(bits) >= 8; bits = bits[8:] {
			values = append(values, math.Float64frombits(binary.BigEndian.Uint64(bits)))
		}
		one := &series.Series{Name: name, Path: path, Consolidation: consolidation, Start: start, End: start + step, Step: step, XFF: xff, Values: values}
		list := series.List{one, one}
		written := func(write func(*api.Body, *rendering, series.List) error) []byte {
			b := &api.Body{W: httptest.NewRecorder()}
			if err := write(b, nil, list); err != nil {
				t.Fatal(err)
			}
			return b.Buf
		}
		want := wanted(one)

		read, rest, err := msgp.ReadIntfBytes(written(writeMsgpack))
		if err != nil || len(rest) > 0 {
			t.Fatalf("msgpack: %v, %d bytes are left", err, len(rest))
		}
		if all := read.([]any); len(all) != 2 {
			t.Fatalf("msgpack: %d series", len(all))
		}
		for _, s := range read.([]any) {
			same(t, "msgpack", want, s.(map[string]any))
		}

		d := &pickle.Decoder{Dicts: true, Reserve: func(int) error { return nil }}
		v, err := d.Decode(written(writePickle))
		if err != nil || v.Kind() != pickle.List || d.Len(v) != 2 {
			t.Fatalf("pickle: %v, %s of %d", err, v.Kind(), d.Len(v))
		}
		e := d.Elements(v)
		for s, more := e.Next(); more; s, more = e.Next() {
			same(t, "pickle", want, unpickled(d, s).(map[string]any))
		}
	})
}

// wanted is what a reader gets of a series.
func wanted(s *series.Series) map[string]any {
	values := []any{}
	for _, v := range s.Values {
		if series.IsNull(v) {
			values = append(values, nil)
		} else {
			values = append(values, v)
		}
	}
	return map[string]any{
		"name": s.Name, "start": s.Start, "end": s.End, "step": s.Step, "values": values, "pathExpression": s.Path,
		"valuesPerPoint": int64(1), "consolidationFunc": s.Consolidation, "xFilesFactor": s.XFF,
	}
}

// same compares a series that was read. The decoder of pickles has floats only, as carbon's points.
func same(t *testing.T, format string, want, got map[string]any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", format, got, want)
	}
	equal := func(got, want any) bool {
		switch w := want.(type) {
		case float64:
			g, ok := got.(float64)
			return ok && math.Float64bits(g) == math.Float64bits(w)
		case int64:
			return got == want || got == float64(w)
		}
		return got == want
	}
	for name, w := range want {
		list, isList := w.([]any)
		if !isList {
			if !equal(got[name], w) {
				t.Errorf("%s: %s is %v, want %v", format, name, got[name], w)
			}
			continue
		}
		values := got[name].([]any)
		if len(values) != len(list) {
			t.Fatalf("%s: %d values, want %d", format, len(values), len(list))
		}
		for i := range list {
			if !equal(values[i], list[i]) {
				t.Errorf("%s: value %d is %v, want %v", format, i, values[i], list[i])
			}
		}
	}
}

// unpickled makes a value of Go.
func unpickled(d *pickle.Decoder, v pickle.Value) any {
	switch v.Kind() {
	case pickle.None:
		return nil
	case pickle.Number:
		return v.Float()
	case pickle.Text:
		return string(bytes.Clone(d.Text(v)))
	}
	e := d.Elements(v)
	if v.Kind() == pickle.List {
		list := []any{}
		for x, more := e.Next(); more; x, more = e.Next() {
			list = append(list, unpickled(d, x))
		}
		return list
	}
	dict := map[string]any{}
	for k, more := e.Next(); more; k, more = e.Next() {
		x, _ := e.Next()
		dict[string(d.Text(k))] = unpickled(d, x)
	}
	return dict
}
