package logql_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql"
)

// kinds counts the kinds of values that queries read.
type kinds struct {
	*ram.Cache
	mu     sync.Mutex
	counts map[cache.Kind]int
}

func (k *kinds) Get(ctx context.Context, key cache.Key, load func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	k.mu.Lock()
	k.counts[key.Kind]++
	k.mu.Unlock()
	return k.Cache.Get(ctx, key, load)
}

// unusual returns a generator of lines that are like others but, once in a while, need the stages.
func unusual(line func(*rand.Rand) []byte, once int, others ...string) func(*rand.Rand) []byte {
	return func(r *rand.Rand) []byte {
		if r.IntN(once) == 0 {
			return fmt.Appendf(nil, others[r.IntN(len(others))], r.IntN(1000))
		}
		return line(r)
	}
}

// TestSplitNumbers: queries over lines that are not put together have the results of those that are. A line
// filter that all lines pass has them put together.
func TestSplitNumbers(t *testing.T) {
	jsonOthers := []string{
		`{"method":"G\u0045T","path":"/escaped","status":200,"duration_ms":%d.5}`,
		`{"method":{"deep":"%d"},"path":"/nested","duration_ms":7}`, `{"method":"PUT","status":%d,"x":null}`,
	}
	logfmtOthers := []string{`status="4\u0030%d" bytes=12`, `msg=plain%d status=200=3 bytes=77`, `lonely %d`}
	const filter = `!= "nowhere to be found"`
	for i, c := range []struct {
		name string
		line func(*rand.Rand) []byte
	}{
		{"json", jsonLine}, {"logfmt", logfmtLine},
		{"json, some unusual", unusual(jsonLine, 3000, jsonOthers...)}, {"json, many unusual", unusual(jsonLine, 20, jsonOthers...)},
		{"logfmt, some unusual", unusual(logfmtLine, 3000, logfmtOthers...)}, {"mixed", unusual(logfmtLine, 2, `{"status":%d,"duration_ms":12}`)},
	} {
		if racetest.Fewer > 1 && i > 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			parser := "logfmt"
			if strings.HasPrefix(c.name, "json") {
				parser = "json"
			}
			pages := &kinds{Cache: newPages(t, 64<<20), counts: make(map[cache.Kind]int)}
			w := newBench(t, load{4, 200, 60, c.line}, pages)
			for _, text := range []string{
				`sum by (status) (count_over_time({app=~".+"} FILTER | PARSER [10s]))`,
				`sum by (path, app) (bytes_over_time({app=~".+"} FILTER | PARSER | status >= 300 [20s]))`,
				`quantile_over_time(0.9, {app=~".+"} FILTER | PARSER | unwrap duration_ms | __error__="" [10s]) by (method)`,
				`sum(sum_over_time({app=~".+"} FILTER | PARSER | unwrap bytes | __error__="" [7s]))`,
				`max_over_time({app=~".+"} FILTER | PARSER | unwrap duration(duration) | __error__="" [10s]) by (status)`,
			} {
				text = strings.ReplaceAll(text, "PARSER", parser)
				pages.Cache = newPages(t, 64<<20)
				split := strings.ReplaceAll(text, "FILTER ", "")
				cold, warm := w.numbers(t, split, int64(5*time.Second)), w.numbers(t, split, int64(5*time.Second))
				whole := w.numbers(t, strings.ReplaceAll(text, "FILTER", filter), int64(5*time.Second))
				sameNumbers(t, text, cold, whole)
				sameNumbers(t, text, warm, whole)
				sameNumbers(t, text, w.numbers(t, split, int64(5*time.Second)), whole) // whose lines are in the cache
			}
			if pages.counts[cache.Stored] == 0 {
				t.Error("no page was read as it is stored")
			}
		})
	}
}

func sameNumbers(t *testing.T, text string, got, want *logql.Numbers) {
	t.Helper()
	if len(got.Matrix.Series) != len(want.Matrix.Series) || got.Stats.Lines != want.Stats.Lines || got.Stats.Bytes != want.Stats.Bytes {
		t.Fatalf("%s: %d series of %+v, want %d of %+v", text, len(got.Matrix.Series), got.Stats, len(want.Matrix.Series), want.Stats)
	}
	for i := range want.Matrix.Series {
		g, w := &got.Matrix.Series[i], &want.Matrix.Series[i]
		if string(g.Labels) != string(w.Labels) {
			t.Fatalf("%s: series %s, want %s", text, g.Labels, w.Labels)
		}
		for k := range w.Values {
			if g.Present.Has(k) != w.Present.Has(k) || math.Float64bits(g.Values[k]) != math.Float64bits(w.Values[k]) {
				t.Fatalf("%s: step %d of %s is %v, want %v", text, k, w.Labels, g.Values[k], w.Values[k])
			}
		}
	}
}
