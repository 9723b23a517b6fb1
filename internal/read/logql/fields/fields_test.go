package fields

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		value string
		typ   Type
		query string
	}{
		{"5", Int, "5"},
		{"-5", Int, "-5"},
		{"99999999999999999999", Float, "99999999999999999999"},
		{"1e3", Float, "1e3"},
		{"NaN", Float, "NaN"},
		{"t", Boolean, "t"},
		{"False", Boolean, "False"},
		{"5m", Duration, "5m"},
		{"1h30m", Duration, "1h30m"},
		{"5M", Bytes, "5.0MB"},
		{"5 MB", Bytes, "5.0MB"},
		{"82 MB", Bytes, "82MB"},
		{"1,000", Bytes, "1,000"},
		{"1234567b", Bytes, "1234567b"},
		{"10KiB", Bytes, "10KiB"},
		{"5 bananas", String, "5 bananas"},
		{"", String, ""},
	} {
		if got := TypeOf(c.value); got != c.typ {
			t.Errorf("%q: expected %s, got %s", c.value, c.typ, got)
		}
		if got := forQuery(c.value); got != c.query {
			t.Errorf("%q: expected %q for queries, got %q", c.value, c.query, got)
		}
	}
}

// Memory is charged for each field and each value.
func TestQuotaOfFields(t *testing.T) {
	q := &model.Quota{MaxBytes: 100_000}
	d, err := NewDetector(context.Background(), q, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_000 {
		if err = d.Add(&Line{Text: fmt.Appendf(nil, "key%d=%d", n, n)}); err != nil {
			break
		}
	}
	if !errors.Is(err, model.ErrLimit) || len(d.fields) > 100_000/fieldBytes {
		t.Errorf("%d fields: %v", len(d.fields), err)
	}
	v, err := NewValues(context.Background(), &model.Quota{MaxBytes: 100_000}, "key", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_000 {
		if err = v.Add(&Line{Text: fmt.Appendf(nil, "key=%d", n)}); err != nil {
			break
		}
	}
	if !errors.Is(err, model.ErrLimit) {
		t.Error(err)
	}
}

// A line that no parser can take, since it has too many labels, has no fields. It does not fail the sample.
func TestLineOverLimits(t *testing.T) {
	var line []byte
	for n := range 20_000 {
		line = fmt.Appendf(line, "k%d=v ", n)
	}
	d, err := NewDetector(context.Background(), new(model.Quota), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(line), "a=1"} {
		if err := d.Add(&Line{Text: []byte(text), Metadata: model.LabelsOf("m", "x")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Fields(); len(got) != 2 || got[0].Name != "a" || got[1].Name != "m" {
		t.Errorf("%+v", got)
	}
}

// FuzzFields checks that every line can be added, and that every path belongs to a field of JSON.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c_extracted":"x"}`), "c")
	f.Add([]byte(`level=info msg="x y"`), "level")
	f.Add([]byte(`{"":{"":{"":1}}}`), "")
	f.Fuzz(func(t *testing.T, line []byte, name string) {
		d, err := NewDetector(context.Background(), new(model.Quota), 1000)
		if err != nil {
			t.Fatal(err)
		}
		l := &Line{Text: line}
		if name != "" {
			l.Stream = model.LabelsOf(name, "x")
		}
		if err := d.Add(l); err != nil {
			t.Fatal(err)
		}
		for _, x := range d.Fields() {
			json := len(x.Parsers) == 1 && x.Parsers[0] == "json"
			if json != (len(x.JSONPath) > 0) {
				t.Errorf("%+v", x)
			}
		}
	})
}
