package result

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/shaledb/shale/bench/proc"
)

func records() []Record {
	m := proc.Machine{CPU: "Big Iron", Cores: 2}
	one := func(load, system string, rate, cpu float64) Record {
		r := Record{Load: load, System: system, Version: "1", Machine: m}
		r.Set("samples/s", rate)
		r.Set("cpu-s/M", cpu)
		return r
	}
	slow := one("known", "other", 500_000, 2)
	slow.Note("still busy")
	broken := Record{Load: "known", System: "other", Machine: m, Error: "it fell over"}
	return []Record{one("known", "shale", 1e6, 0.8), slow, one("known", "shale", 2e6, 1), broken, one("known", "shale", 1.5e6, 0.9), one("new", "shale", 4000, 4)}
}

func TestStat(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want Stat
	}{{nil, Stat{}}, {[]float64{3}, Stat{1, 3, 3, 3}}, {[]float64{3, 1, 2}, Stat{3, 2, 1, 3}}, {[]float64{4, 1, 3, 2}, Stat{4, 2.5, 1, 4}}} {
		if got := StatOf(c.in); got != c.want {
			t.Errorf("%v: %+v", c.in, got)
		}
	}
	if Quantile(nil, 0.5) != 0 || Quantile([]float64{3, 1, 2}, 0.5) != 2 || Quantile([]float64{3, 1, 2}, 0.99) != 3 {
		t.Error("quantiles")
	}
}

func TestTable(t *testing.T) {
	groups := Groups(records())[:2]
	want := `| system | runs | samples/s | CPU-s per million, at the end |
|---|---|---|---|
| shale | 3 | 1.50 M (1.00 M–2.00 M) | 0.900 (0.800–1.00) |
| other | 2 | 500 k | 2.00 |
`
	if got := Table(groups, []string{"samples/s", "cpu-s/M", "p99-s"}); got != want {
		t.Error(got)
	}
	if got := Compare(groups, []string{"samples/s", "cpu-s/M", "p99-s"}); got != "shale over other: samples/s 3.00, CPU-s per million, at the end 0.45.\n" {
		t.Error(got)
	}
	if got := Remarks(groups); got != "- other: 1 of 2 runs failed: it fell over\n- other, 1 of 2 runs: still busy\n" {
		t.Error(got)
	}
	if Compare(nil, nil) != "" {
		t.Error("nothing compares")
	}
}

func TestWriteGo(t *testing.T) {
	var text bytes.Buffer
	if err := WriteGo(&text, records(), "shale", func(load, figure string) bool { return load == "known" || figure != "cpu-s/M" }); err != nil {
		t.Fatal(err)
	}
	want := `goos: linux
pkg: github.com/shaledb/shale/bench
cpu: Big Iron
BenchmarkLoad/known-2	1	0.8 cpu-s/M	1e+06 samples/s
BenchmarkLoad/known-2	1	1 cpu-s/M	2e+06 samples/s
BenchmarkLoad/known-2	1	0.9 cpu-s/M	1.5e+06 samples/s
BenchmarkLoad/new-2	1	4000 samples/s
Unit cpu-s/M better=lower
Unit samples/s better=higher
`
	if text.String() != want {
		t.Error(text.String())
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name string
		v    float64
		want string
	}{
		{"p99-s", 0.0123, "12.3 ms"}, {"p99-s", 1.5e-5, "15.0 µs"}, {"p99-s", 0, "0"}, {"p99-s", 61, "61.0 s"}, {"rss-B", 1.25e9, "1.25 GB"}, {"rss-B", 512, "512 B"},
		{"rss-B", 2048, "2.05 kB"}, {"series", 10, "10"}, {"series", 12_345, "12 k"}, {"writes/s", 3.5, "3.50"}, {"disk-B/sample", 0.00004, "4e-05"},
	} {
		u, ok := unitOf(c.name)
		if got := u.write(c.v); !ok || got != c.want {
			t.Errorf("%s %v: %s", c.name, c.v, got)
		}
	}
	if Describe("soup", 1) != "soup 1" || Title("p50-s") != "p50" {
		t.Error("titles")
	}
	defer func() {
		if recover() == nil {
			t.Error("a figure without a unit is taken")
		}
	}()
	(&Record{}).Set("soup", 1)
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	all := records()
	all[0].Curves = map[string][]proc.Point{"rss-B": {{0, 1}, {1, 2.5}}}
	for _, r := range all {
		if err := Append(name, r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(name)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%v: %+v", err, got)
	}
	if err := os.WriteFile(name, []byte("{}\nsoup\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

func TestFill(t *testing.T) {
	const page = "a\n<!-- bench: x -->\nold\n<!-- bench: end -->\nb\n<!-- bench: y -->\n<!-- bench: z -->\n<!-- bench: end -->\n"
	got, err := Fill(page, "x", "new\n")
	if err != nil || got != strings.Replace(page, "old", "new", 1) {
		t.Errorf("%v: %s", err, got)
	}
	for _, name := range []string{"y", "w"} {
		if _, err := Fill(page, name, ""); err == nil {
			t.Errorf("section %s is filled", name)
		}
	}
}
