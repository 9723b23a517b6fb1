package app

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

var (
	python       = flag.String("python", "", "interpreter of an environment with graphite-web 1.1.10, for TestRollupsBesideWhisper")
	whisperDays  = flag.Int("whisper-days", 12, "days of points of TestRollupsBesideWhisper")
	whisperSeed  = flag.Uint64("whisper-seed", 1, "of TestRollupsBesideWhisper")
	whisperPanel = flag.Int("whisper-renders", 60, "renders of TestRollupsBesideWhisper a day")
)

// graphiteWeb is a graphite-web over whisper files: see archives.py.
type graphiteWeb struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Reader
}

func startGraphiteWeb(t *testing.T) *graphiteWeb {
	script, err := filepath.Abs("../../test/graphite-oracle/python/archives.py")
	must(t, err)
	cmd := exec.CommandContext(t.Context(), *python, "-W", "ignore", script)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &graphiteWeb{t, json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)}
}

// ask returns the body of the answer.
func (w *graphiteWeb) ask(q map[string]any) []byte {
	w.t.Helper()
	must(w.t, w.in.Encode(q))
	line, err := w.out.ReadBytes('\n')
	must(w.t, err)
	var answer [2]any
	must(w.t, json.Unmarshal(line, &answer))
	if answer[0] != 200.0 {
		w.t.Fatalf("%v: status %v: %.2000s", q["url"], answer[0], answer[1])
	}
	return []byte(answer[1].(string))
}

// TestRollupsBesideWhisper: a graphite-web over whisper files with several archives, and Shale with the same
// schemas, whose points expire while their rollups stay, draw the same values. A
// zero may have another sign.
func TestRollupsBesideWhisper(t *testing.T) {
	if *python == "" {
		t.Skip("no -python; make oracle-graphite has one")
	}
	schemas, aggregations := "", ""
	retentions := map[string]string{"three": "60s:1d,300s:7d,1h:1y", "two": "60s:2d,10m:30d", "four": "60s:1d,5m:2d,15m:6d,2h:1y"}
	for _, name := range []string{"three", "two", "four"} {
		schemas += fmt.Sprintf("[%[1]s]\npattern = ^%[1]s\\.\nretentions = %[2]s\n", name, retentions[name])
	}
	methods := []string{"average", "sum", "last", "max", "min", "avg_zero", "absmax", "absmin"}
	factors := map[string]float64{"none": 0, "half": 0.5, "all": 1}
	for _, m := range methods {
		for x, f := range factors {
			aggregations += fmt.Sprintf("[%[1]s %[2]s]\npattern = \\.%[1]s\\.%[2]s$\nxFilesFactor = %[3]v\naggregationMethod = %[1]s\n", m, x, f)
		}
	}
	p := policiesOf(t, schemas, aggregations)
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return p }
		o.Retention = keeping(3 * day)
	})
	r := rand.New(rand.NewPCG(*whisperSeed, 0))
	web := startGraphiteWeb(t)
	create := map[string]any{}
	var names []string
	for schema := range retentions {
		for _, m := range methods {
			for x, f := range factors {
				name := schema + "." + m + "." + x
				q, err := p.Of(name)
				must(t, err)
				var archives [][2]int64
				for _, a := range q.Archives {
					archives = append(archives, [2]int64{a.Step, a.Points})
				}
				create[name] = []any{archives, m, f}
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	web.ask(map[string]any{"create": create})
	s.now = s.now / int64(day) * int64(day)
	begin := s.now
	renders, values, nulls, rolled := 0, 0, 0, 0
	for d := range *whisperDays {
		for hour := range 24 {
			from := begin + int64(d)*int64(day) + int64(hour)*int64(time.Hour)
			s.now = from + int64(time.Hour) - 1
			points := map[string][][2]any{}
			for _, name := range names {
				share := []float64{0.95, 0.5, 0.1, 0}[r.IntN(4)]
				b := s.Path().Batch("a", model.Metrics)
				l := model.LabelsOf("__name__", name)
				b.Source = oneSeries(l)
				for m := range int64(60) {
					if r.Float64() > share {
						continue
					}
					at := from + m*int64(time.Minute) + r.Int64N(60)*int64(time.Second)
					v := []float64{float64(r.IntN(1000)), r.NormFloat64() * 1e3, -float64(r.IntN(5)), r.Float64() / 3}[r.IntN(4)]
					points[name] = append(points[name], [2]any{at / int64(time.Second), v})
					b.Samples.Append(at, math.Float64bits(v), 0)
				}
				b.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
				_, err := s.Path().Push(t.Context(), b)
				must(t, err)
				s.Path().Recycle(b)
			}
			web.ask(map[string]any{"now": s.now / int64(time.Second), "points": points})
		}
		must(t, s.Ship())
		s.now += int64(2 * time.Hour)
		s.compact(t)
		s.expire(t)
		s.now -= int64(2*time.Hour) - 1
		now := s.now / int64(time.Second)
		for range *whisperPanel {
			from := now - 1 - r.Int64N(int64(d+1)*86400)
			until := now
			if r.IntN(2) == 0 {
				until = from + 1 + r.Int64N(now-from)
			}
			target := names[r.IntN(len(names))]
			body := web.ask(map[string]any{"now": now, "url": "/render?" + url.Values{
				"target": {target}, "format": {"json"}, "from": {fmt.Sprint(from)}, "until": {fmt.Sprint(until)}, "now": {fmt.Sprint(now)},
			}.Encode()})
			var want []struct {
				Target     string
				Datapoints [][2]*float64
			}
			must(t, json.Unmarshal(body, &want))
			got, cost, err := s.renders(true, from, until, target)
			must(t, err)
			what := fmt.Sprintf("%s from %d until %d at %d", target, from, until, now)
			if len(got) != len(want) || len(got) > 1 {
				t.Fatalf("%s: %d series, want %d", what, len(got), len(want))
			}
			renders++
			for i := range got {
				if len(got[i].Values) != len(want[i].Datapoints) {
					t.Fatalf("%s: %d values, want %d", what, len(got[i].Values), len(want[i].Datapoints))
				}
				if q, err := p.Of(target); err == nil && got[i].Step > q.Archives[0].Step && cost.Samples.Load() < 2*int64(len(got[i].Values))+100 {
					rolled++
				}
				for k, v := range got[i].Values {
					x := want[i].Datapoints[k]
					at := got[i].Start + int64(k)*got[i].Step
					switch {
					case int64(*x[1]) != at:
						t.Fatalf("%s: value %d is at %d, want %v", what, k, at, *x[1])
					case (x[0] == nil) != (v != v), x[0] != nil && *x[0] != v:
						t.Fatalf("%s: at %d is %v, want %.300s", what, at, v, body)
					}
					if values++; x[0] == nil {
						nulls++
					}
				}
			}
		}
	}
	t.Logf("%d renders, %d of them from rollups, with %d values, %d of them null: the same", renders, rolled, values, nulls)
	must(t, s.Close())
}
