package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
)

func all() Limits { return Limits{Requests: 1000, Sample: 1} }

func TestCSV(t *testing.T) {
	got, err := ReadCSV("t.csv", strings.NewReader("time,Object,bytes,query,age,kind,op\n"+
		"100,a,10,q1,60,read,x\n100.5,b,20,q1,,write,x\n101,a,12,q1,61,read,x\n102,a,5,q2,62.9,,x\n"), all())
	if err != nil {
		t.Fatal(err)
	}
	q1, q2 := got.Requests[0].Query, got.Requests[3].Query
	want := []Request{
		{At: 0, Key: 0, Query: q1, Age: 60, First: true}, {At: 500, Key: 1, Query: q1, Age: UnknownAge, Write: true},
		{At: 1000, Key: 0, Query: q1, Age: 61}, {At: 2000, Key: 0, Query: q2, Age: 62, First: true},
	}
	if d := cmp.Diff(want, got.Requests); d != "" || q1 == q2 {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]uint32{12, 20}, got.Sizes); d != "" {
		t.Errorf("sizes (-want +got):\n%s", d)
	}
	if share, ok := got.Young(62); !ok || share != 0.5 {
		t.Errorf("%g of the bytes are younger than 62 s (%t), expected half", share, ok)
	}
	s := got.Summarize()
	if s.Requests != 4 || s.Reads != 3 || s.First != 2 || s.ReadSize != 36 || s.Footprint != 32 || s.Keys != 2 {
		t.Errorf("summary: %+v", s)
	}
}

func TestBadCSV(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "got an empty file"},
		{"time,size\n1,2\n", "expected a column key"},
		{"1,a,10\n", "expected a column time"},
		{"time,key,size\n", "the trace has no requests"},
		{"time,key,size\n1,a\n", "wrong number of fields"},
		{"time,key,size\nsoon,a,1\n", `line 2: invalid: expected a time in seconds, got "soon"`},
		{"time,key,size\nNaN,a,1\n", "expected a time in seconds"},
		{"time,key,size\n1e300,a,1\n", "expected a time in seconds"},
		{"time,key,size\n1,a,-1\n", "expected a size in bytes below 4 GiB"},
		{"time,key,size\n1,a,4294967296\n", "expected a size in bytes below 4 GiB"},
		{"time,key,size\n2,a,1\n1,a,1\n", "one that is 1000 ms before the previous one"},
		{"time,key,size,age\n2,a,1,old\n", "expected an age in seconds"},
		{"time,key,size,kind\n2,a,1,peek\n", "expected the kind read or write"},
		{"time,key,size\n2,a,1\n3,\"" + strings.Repeat("x", maxRowBytes+1) + "\",1\n", "a row has more than 65536 bytes"},
	} {
		_, err := ReadCSV("t.csv", strings.NewReader(c.text), all())
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func oracleRecords(records ...[4]uint64) []byte {
	var b []byte
	for _, r := range records {
		b = binary.LittleEndian.AppendUint32(b, uint32(r[0]))
		b = binary.LittleEndian.AppendUint64(b, r[1])
		b = binary.LittleEndian.AppendUint32(b, uint32(r[2]))
		b = binary.LittleEndian.AppendUint64(b, r[3])
	}
	return b
}

func TestOracle(t *testing.T) {
	text := oracleRecords([4]uint64{5, 77, 100, 2}, [4]uint64{6, 78, 50, 0}, [4]uint64{8, 77, 100, 0})
	got, err := ReadOracle("t", bytes.NewReader(text), all())
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{At: 0, Key: 0, Query: 0, Age: UnknownAge, First: true}, {At: 1000, Key: 1, Query: 1, Age: UnknownAge, First: true},
		{At: 3000, Key: 0, Query: 2, Age: UnknownAge, First: true},
	}
	if d := cmp.Diff(want, got.Requests); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if _, err = ReadOracle("t", bytes.NewReader(text[:30]), all()); err == nil || !strings.Contains(err.Error(), "record 1 is truncated: 6 of 24 bytes") {
		t.Errorf("a truncated file: %v", err)
	}
}

// TestLimits: a trace is bounded, and a sample of it keeps all requests of a key or none.
func TestLimits(t *testing.T) {
	var records [][4]uint64
	for i := range 5000 {
		records = append(records, [4]uint64{uint64(i), uint64(i % 1000), 1, 0})
	}
	text := oracleRecords(records...)
	_, err := ReadOracle("t", bytes.NewReader(text), Limits{Requests: 4999, Sample: 1})
	if !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "--max-requests") {
		t.Errorf("a trace beyond the limit: %v", err)
	}
	got, err := ReadOracle("t", bytes.NewReader(text), Limits{Requests: 4999, Sample: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Sizes); n < 150 || n > 250 || len(got.Requests) != 5*n || got.Scale != 5 {
		t.Errorf("a fifth of 1000 keys gives %d keys, %d requests, scale %g", n, len(got.Requests), got.Scale)
	}
}

// check fails if a trace that was read breaks what the simulator relies on.
func check(t *testing.T, got *Trace, err error, l Limits) {
	if err != nil {
		return
	}
	if len(got.Requests) == 0 || len(got.Requests) > l.Requests || len(got.Sizes) > len(got.Requests) {
		t.Fatalf("%d requests of %d keys", len(got.Requests), len(got.Sizes))
	}
	at := int64(0)
	for _, r := range got.Requests {
		if r.At < at || int(r.Key) >= len(got.Sizes) {
			t.Fatalf("request %+v after %d ms", r, at)
		}
		at = r.At
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("time,key,size,query,age,kind\n1,a,2,q,3,read\n2.5,b,0,q,,write\n"))
	f.Add([]byte("ts,obj_id,bytes\n\"1\",\"a\nb\",4294967295\n-5,,1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := Limits{Requests: 100, Sample: 0.5}
		got, err := ReadCSV("t", bytes.NewReader(text), l)
		check(t, got, err, l)
	})
}

func FuzzOracle(f *testing.F) {
	f.Add(oracleRecords([4]uint64{5, 77, 100, 2}, [4]uint64{1 << 31, 78, 50, 0}))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := Limits{Requests: 100, Sample: 1}
		got, err := ReadOracle("t", bytes.NewReader(text), l)
		check(t, got, err, l)
	})
}
