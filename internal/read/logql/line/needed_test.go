package line_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TestNeeded: with a list of labels that are needed, a line stays or goes as without it, becomes the same,
// and those labels are the same.
func TestNeeded(t *testing.T) {
	racetest.SkipSerial(t)
	for _, seed := range seeds() {
		checkNeeded(t, seed)
	}
}

func checkNeeded(t *testing.T, seed uint64) {
	g, rnd := linetest.NewGenerator(seed), rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "x", "level", "status", "app_extracted", "msg", "level_extracted"}
	kept := 0
	for range 10000 {
		c := g.Case()
		needed := []string{}
		for _, n := range names {
			if rnd.IntN(4) == 0 {
				needed = append(needed, n)
			}
		}
		q, err := syntax.ParseLog(c.Query)
		if err != nil {
			continue
		}
		all, err := line.Compile(q.Stages)
		if err != nil {
			continue
		}
		some := all.Needing(needed...)
		var results [2]line.Result
		var keeps [2]bool
		for i, p := range []*line.Pipeline{all, some} {
			r := p.Runner()
			r.SetStream(model.LabelsOf(c.Stream...))
			if keeps[i], err = r.Process(c.At, []byte(c.Line), model.LabelsOf(c.Metadata...), &results[i]); err != nil {
				t.Fatal(err)
			}
		}
		if keeps[0] != keeps[1] {
			t.Fatalf("seed %d: %+v needs %q: stays %v", seed, c, needed, keeps)
		}
		if !keeps[0] {
			continue
		}
		kept++
		if !bytes.Equal(results[0].Line, results[1].Line) {
			t.Fatalf("seed %d: %+v needs %q: %q, want %q", seed, c, needed, results[1].Line, results[0].Line)
		}
		for _, n := range append(needed, line.ErrorLabel, line.ErrorDetailsLabel) {
			if strings.Contains(c.Line, `__error`) || strings.Contains(string(results[0].Line), `__error`) {
				continue // a parsed label may be called so
			}
			if a, b := results[0].Parsed.Get(n), results[1].Parsed.Get(n); !bytes.Equal(a, b) || (a == nil) != (b == nil) {
				t.Fatalf("seed %d: %+v needs %q: %s is %q, want %q", seed, c, needed, n, b, a)
			}
		}
	}
	if kept < 1000 {
		t.Errorf("seed %d: only %d lines are kept", seed, kept)
	}
}

// TestNeedsMetadata: a pipeline does so unless all labels of its samples are surely those of the stream, and
// then samples have the same labels with metadata and without.
func TestNeedsMetadata(t *testing.T) {
	stream := model.LabelsOf("a", "1", "a_extracted", "2", "b_extracted", "3", "c", "4")
	metadata := model.LabelsOf("a", "5", "b", "6", "c", "7", "d", "8")
	for name, want := range map[string]bool{"a": false, "a_extracted": true, "b_extracted": false, "c": false, "c_extracted": true, "d": true} {
		p, err := line.CompileSampling(nil, line.Sampling{Labels: []string{name}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.NeedsMetadata(stream); got != want {
			t.Errorf("%s: %v, should be %v", name, got, want)
		}
		r := p.Runner()
		r.SetStream(stream)
		var labels [2]string
		for i, m := range []model.Labels{nil, metadata} {
			var out line.Sample
			if ok, err := r.Sample(1, nil, m, &out); !ok || err != nil {
				t.Fatal(ok, err)
			}
			labels[i] = string(out.Labels)
		}
		if differ := labels[0] != labels[1]; differ != want {
			t.Errorf("%s: labels of the sample %q with metadata, %q without", name, labels[1], labels[0])
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		line string
		how  syntax.Conversion
		want float64
		ok   bool
		err  string
	}{
		{"x=1.5", syntax.ConvertNumber, 1.5, true, ""},
		{"x=1500ms", syntax.ConvertDuration, 1.5, true, ""},
		{"x=2KiB", syntax.ConvertBytes, 2048, true, ""},
		{"y=1", syntax.ConvertNumber, 0, false, ""},
		{"x=", syntax.ConvertNumber, 0, false, ""},
		{"x=abc", syntax.ConvertNumber, 0, true, "SampleExtractionErr"},
		{"x=abc", syntax.ConvertDuration, 0, true, "SampleExtractionErr"},
	} {
		q, err := syntax.ParseLog(`{a="b"} | logfmt`)
		if err != nil {
			t.Fatal(err)
		}
		p, err := line.CompileSampling(q.Stages, line.Sampling{Unwrap: &syntax.Unwrap{Label: "x", Conversion: c.how}})
		if err != nil {
			t.Fatal(err)
		}
		r := p.Runner()
		r.SetStream(model.LabelsOf("a", "b"))
		var out line.Sample
		ok, err := r.Sample(1, []byte(c.line), nil, &out)
		if err != nil {
			t.Fatal(err)
		}
		if out.Value != c.want || ok != c.ok || string(out.Labels.Get(line.ErrorLabel)) != c.err || out.Failed != (c.err != "") {
			t.Errorf("%s: %v %+v", c.line, ok, out)
		}
	}
}
