package logs

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

func TestStreams(t *testing.T) {
	rules := DefaultRules()
	many := make([]string, 16)
	for i := range many {
		many[i] = fmt.Sprintf(`l%02d="v"`, i)
	}
	for _, c := range []struct{ text, labels, reason, why string }{
		{`{app="a"}`, `{app="a", service_name="a"}`, "", ""},
		{` { b = "2" , a="1", } `, `{a="1", b="2", service_name="unknown_service"}`, "", ""},
		{`{job="j", name="n", service_name=""}`, `{job="j", name="n", service_name="n"}`, "", ""},
		{`{service_name="s", app="a"}`, `{app="a", service_name="s"}`, "", ""},
		{`{app="\"é\\", b='c'}`, `{app="\"é\\", b="c", service_name="\"é\\"}`, "", ""},
		{"{app=`a\\b`}", `{app="a\\b", service_name="a\\b"}`, "", ""},
		{`{"a.b"="c"}`, `{a.b="c", service_name="unknown_service"}`, "", ""},
		{`up{a="b"}`, `{__name__="up", a="b", service_name="unknown_service"}`, "", ""},
		{`{}`, `{service_name="unknown_service"}`, "", ""},
		{`{empty=""}`, `{service_name="unknown_service"}`, "", ""},
		{`{a="b"`, "", write.ReasonLabels, `couldn't parse labels: 1:7: parse error: unexpected end of input inside braces`},
		{`a="b"`, "", write.ReasonLabels, `couldn't parse labels: 1:2: parse error: unexpected "="`},
		{`{a="b", a="c"}`, "", write.ReasonDuplicateLabel, `stream '{a="b", a="c", service_name="unknown_service"}' has duplicate label name: 'a'`},
		{"{" + strings.Join(many, ",") + "}", "", write.ReasonTooManyLabels, `16 label names; limit 15`},
		{"{" + strings.Join(many[:15], ",") + "}", `l14="v", service_name="unknown_service"}`, "", ""},
		{`{` + strings.Repeat("n", 1025) + `="v"}`, "", write.ReasonNameTooLong, "has label name too long: 'nnn"},
		{`{n="` + strings.Repeat("v", 2049) + `"}`, "", write.ReasonValueTooLong, "has label value too long: 'vvv"},
		{`{n="` + strings.Repeat("v", model.MaxLabelBytes) + `"}`, "", write.ReasonLabelsTooLong, "the labels of the stream exceed 1048576 bytes"},
	} {
		s := NewStreams(9, StreamCacheBytes)
		for range 2 {
			got := s.GetText(&rules, []byte(c.text))
			if got.Reason != c.reason || !strings.Contains(got.Why, c.why) {
				t.Errorf("%.80s: %q %q, want %q %q", c.text, got.Reason, got.Why, c.reason, c.why)
			}
			if c.reason == "" && (!strings.HasSuffix(got.Labels.String(), c.labels) || got.Labels.Check() != nil || got.Key != got.Labels.Key(9, model.Logs)) {
				t.Errorf("%s: %s, want %s", c.text, got.Labels, c.labels)
			}
			if len(got.Why) > 1000 {
				t.Errorf("%.80s: a text of %d bytes", c.text, len(got.Why))
			}
		}
	}
	rules.ServiceNames = nil
	s := NewStreams(9, StreamCacheBytes)
	if got := s.GetText(&rules, []byte(`{app="a"}`)); got.Labels.String() != `{app="a"}` {
		t.Error(got.Labels)
	}
	if got := s.GetText(&rules, []byte(`{}`)); got.Reason != write.ReasonLabels || got.Why != "error at least one label pair is required per stream" {
		t.Error(got)
	}
}

// The cache is bounded, stays correct, and a hit does not allocate.
func TestStreamsAreForgotten(t *testing.T) {
	const most = 256 << 10
	s, rules := NewStreams(9, most), DefaultRules()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 10_000 {
				text := fmt.Sprintf(`{app="a%d"}`, (i*7+g)%5000)
				if got := s.GetText(&rules, []byte(text)); string(got.Labels.Get("service_name")) != text[6:len(text)-2] {
					t.Errorf("%s: %s", text, got.Labels)
				}
			}
		})
	}
	wg.Wait()
	n, bytes := 0, 0
	for i := range s.shards {
		n += len(s.shards[i].young) + len(s.shards[i].old)
		bytes += s.shards[i].bytes
	}
	if n == 0 || n > most/200 || bytes > most/2 {
		t.Errorf("%d streams of %d bytes are remembered", n, bytes)
	}
	text := []byte(`{app="a"}`)
	alloctest.AtMost(t, 0, 100, func() { s.GetText(&rules, text) })
}

// Tenants whose limits differ share the cache, and each gets its own verdict.
func TestStreamsOfTenantsWithOtherLimits(t *testing.T) {
	s, wide, narrow := NewStreams(9, StreamCacheBytes), DefaultRules(), DefaultRules()
	narrow.MaxLabels = 1
	text := []byte(`{a="1", b="2"}`)
	for range 3 {
		if got := s.GetText(&wide, text); got.Reason != "" {
			t.Errorf("wide: %s", got.Why)
		}
		if got := s.GetText(&narrow, text); got.Reason != write.ReasonTooManyLabels {
			t.Errorf("narrow: %q", got.Reason)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	for _, s := range []string{`{a="b"}`, `{ a = "b" , c="d",}`, `{a="b",a="c"}`, `{a=""}`, `{}`, ``, `{"a"="b"}`, `{a='b'}`, `x{a="b"}`, "{a=\"\\n\"}", "{a=\"\xff\"}", `{a="b"}x`, `{on="1",by="2",sum="3"}`, `{1a="b"}`, "{#c\na=\"b\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var lb model.LabelsBuilder
		if !simpleLabels([]byte(text), &lb) {
			return
		}
		// The parser may report an error that comes before; but what the fast path accepts, it accepts
		// too.
		want, err := parser.NewParser(parser.Options{}).ParseMetric(text)
		if err != nil {
			t.Fatalf("%q is read, and the parser says %v", text, err)
		}
		all, err := lb.Append(nil)
		if err != nil {
			return // a duplicate name, which the caller handles
		}
		var pairs model.LabelsBuilder
		want.Range(func(l labels.Label) { pairs.Add([]byte(l.Name), []byte(l.Value)) })
		if w, err := pairs.Append(nil); err != nil || string(w) != string(all) {
			t.Errorf("%q: %s, want %s %v", text, model.Labels(all), model.Labels(w), err)
		}
	})
}

func BenchmarkText(b *testing.B) {
	text := make([][]byte, 1<<16)
	for i := range text {
		text[i] = fmt.Appendf(nil, `{app="app-%d", cluster="eu-west-1", namespace="prod", pod="app-%d-%08x"}`, i%10, i, i*7919)
	}
	for name, most := range map[string]int{"seen": 256 << 20, "new": 1 << 10} {
		b.Run(name, func(b *testing.B) {
			s, rules := NewStreams(9, most), DefaultRules()
			for _, t := range text {
				s.GetText(&rules, t)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s.GetText(&rules, text[i%len(text)])
			}
		})
	}
}
