package logs

import (
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/otlptranslator"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func TestMetadata(t *testing.T) {
	names := []string{"a", "b", "b", "c.d", "c_d", "9x", "__x__", "éa", "trace_id", "zzz"}
	values := []string{"", "1", "2", "a\xffb", "\ufffd", strings.Repeat("long", 50)}
	rapid.Check(t, func(r *rapid.T) {
		var m, base Metadata
		base.Reset()
		want := map[string]string{}
		add := func(m *Metadata, n int) {
			for range n {
				name, value := rapid.SampledFrom(names).Draw(r, "name"), rapid.SampledFrom(values).Draw(r, "value")
				m.Add([]byte(name), []byte(value))
				namer := otlptranslator.LabelNamer{}
				mended, err := namer.Build(name)
				if err != nil {
					r.Fatal(err)
				}
				want[mended] = strings.Map(func(c rune) rune {
					if c == utf8.RuneError {
						return ' '
					}
					return c
				}, value)
			}
		}
		m.Reset()
		if rapid.Bool().Draw(r, "with a base") {
			add(&base, rapid.IntRange(0, 6).Draw(r, "of the base"))
			for name, value := range want {
				if value == "" {
					delete(want, name)
				}
			}
			base.Seal()
			m.ResetTo(&base)
		}
		add(&m, rapid.IntRange(0, 6).Draw(r, "of the line"))
		got := model.Labels(m.appendTo(nil))
		if err := got.Check(); err != nil {
			r.Fatal(err)
		}
		var pairs []string
		for name, value := range want {
			if value != "" {
				pairs = append(pairs, name, value)
			}
		}
		if w := model.LabelsOf(pairs...); string(w) != string(got) {
			// An empty value in the line does not hide that of the base.
			for n, v, rest, ok := got.Next(); ok; n, v, rest, ok = rest.Next() {
				if want[string(n)] != string(v) && want[string(n)] != "" {
					r.Fatalf("%s, want %s", got, w)
				}
			}
			for n, v, rest, ok := w.Next(); ok; n, v, rest, ok = rest.Next() {
				if string(got.Get(string(n))) != string(v) {
					r.Fatalf("%s, want %s", got, w)
				}
			}
		}
	})
}

func FuzzMendName(f *testing.F) {
	for _, s := range []string{"", "_", "a", "a.b", "a__b", "__a__", "1a", "_a", "a_", "http.request.method", "é.x", "\xff", "__", "a\x7fb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		namer := otlptranslator.LabelNamer{}
		want, wantErr := namer.Build(name)
		var m Metadata
		m.Reset()
		got, err := m.Sanitize([]byte(name))
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != want {
			t.Errorf("%q: %q %v, want %q %v", name, got, err, want, wantErr)
		}
	})
}

func TestTooMuchMetadataIsOnlyCounted(t *testing.T) {
	var m Metadata
	m.Reset()
	for range 3 * mostMetadataEntries {
		m.Add([]byte("name"), []byte("v"))
	}
	if m.entries != 3*mostMetadataEntries || m.bytes != 5*m.entries || len(m.pairs) > mostMetadataEntries+2 {
		t.Errorf("%d entries, %d bytes, %d kept", m.entries, m.bytes, len(m.pairs))
	}
}

func TestEachInOrder(t *testing.T) {
	var m Metadata
	m.Reset()
	for _, n := range []string{"b", "a", "c", "a"} {
		m.Add([]byte(n), []byte(n))
	}
	var got []string
	m.Each(func(n, _ []byte) { got = append(got, string(n)) })
	if !sort.StringsAreSorted(got) || len(got) != 3 {
		t.Error(got)
	}
}
