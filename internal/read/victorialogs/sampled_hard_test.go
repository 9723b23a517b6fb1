package victorialogs

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/draw"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// TestSampleOfEqualLines: equal lines of several streams all count, and some stand for many equal lines of
// one stream, too.
func TestSampleOfEqualLines(t *testing.T) {
	for _, pods := range []int{1, 100, 2000} {
		for _, plain := range []bool{true, false} {
			w := newSampleWorld(t, nil, &sampleServer{})
			const windows = 40
			for i := range windows * max(pods, 2000) {
				l := sampleLine{time: w.now.Load() - int64(i%windows)*int64(30*time.Minute), text: "GET /healthz 200"}
				if pods > 1 {
					l.pod = fmt.Sprint(i / windows % pods)
				}
				w.lines = append(w.lines, l)
				if pods == 100 && i/windows >= pods {
					w.lines[len(w.lines)-1].text = fmt.Sprint("another line ", i/windows/pods)
				}
			}
			_, all, asked, _, levels := w.sampleOf(t, 24*time.Hour, 0, model.TextSample{Lines: 4096, Plain: plain})
			want := float64(windows * 2000)
			if pods == 1 && !plain {
				want = 0 // they are the same line, which is known where streams are
				for _, n := range levels {
					want += float64(n)
				}
				if levels["unknown"] != windows {
					t.Errorf("%v lines, want one of each window", levels)
				}
				continue
			}
			if math.Abs(all-want) > 1e-6*want {
				t.Errorf("%d pods, plain: %v: %.0f lines by %q, want %.0f", pods, plain, all, asked, want)
			}
		}
	}
}

// TestSampleBounded: a sample is small however many lines there are, and takes the memory of its rows once.
func TestSampleBounded(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	for i := range 60_000 {
		w.lines = append(w.lines, sampleLine{time: w.now.Load() - int64(i), text: fmt.Sprint("request ", i)})
	}
	_, all, _, _, levels := w.sampleOf(t, time.Hour, 0, model.TextSample{Lines: 61, Plain: true})
	if levels["unknown"] == 0 || levels["unknown"] > 6 || math.Abs(all-60_000) > 1 {
		t.Errorf("a sample of %v stands for %.0f lines", levels, all)
	}
	w.lines = w.lines[:0]
	for i := range 4000 {
		w.lines = append(w.lines, sampleLine{time: w.now.Load() - int64(i)*int64(20*time.Second), text: fmt.Sprint("request ", i)})
	}
	w.now.Add(int64(watch.SumEvery))
	req := w.request(24*time.Hour, model.TextSample{Lines: 4096, Plain: true})
	req.Quota.Pool.MaxBytes = 4000 * 270 // a row takes about 200 while it waits, and 170 in its page
	cursors, err := w.SelectText(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cursors {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	w.watch.Wait()
}

// TestSampleTooLarge: where a sample would be too large, all lines are read, and no sample is asked for
// again.
func TestSampleTooLarge(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	l := &sampleLine{time: w.now.Load()}
	for i := 0; l.text == "" || hashOf(l) > draw.Hashes>>10; i++ {
		l.text = fmt.Sprint("line ", i)
	}
	for range 1000 {
		w.lines = append(w.lines, *l)
	}
	for i, want := range []int{3, 1} { // the sample was tried, or not
		_, _, asked, _, _ := w.sampleOf(t, time.Hour, 0, model.TextSample{Lines: 61, Plain: true})
		if last := asked[len(asked)-1]; len(asked) != want || !strings.Contains(last, "stats by (_stream") {
			t.Errorf("request %d: %q", i, asked)
		}
		w.now.Add(1)
	}
}

// TestSampleKeptOfMixed: what was asked for with streams, since a level may depend on them, is kept, too.
func TestSampleKeptOfMixed(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	w.fill(w.now.Load())
	w.lines[0].more = `,"level":"info","lvl":"error"`
	for range 2 { // lines settle
		w.sampleOf(t, 24*time.Hour, 0, model.TextSample{Lines: 100})
		w.now.Add(int64(watch.SumEvery))
	}
	of := model.TextSample{Lines: 8192, Plain: true}
	_, _, asked, cold, _ := w.sampleOf(t, 24*time.Hour, 0, of)
	if len(asked) != 4 {
		t.Errorf("%q, want a sample without streams and one with them", asked)
	}
	w.now.Add(int64(10 * time.Second))
	if _, _, asked, sent, _ := w.sampleOf(t, 24*time.Hour, 0, of); len(asked) > 2 || sent > cold/8 {
		t.Errorf("%d bytes after %d by %q", sent, cold, asked)
	}
}

// TestSampleRefused: a server that knows no samples is asked for all lines, and so is one that refuses the
// sample of a selector. The samples of others are still asked for then.
func TestSampleRefused(t *testing.T) {
	for _, test := range []struct {
		refuses string
		asked   []int
		scope   string
	}{
		{"stats by (_time:", []int{3, 1, 1}, "server"}, // a count, a probe, and the directory
		{`{"app"="web"} | stats by (_time:`, []int{3, 2, 1}, "selector"},
	} {
		w := newSampleWorld(t, nil, &sampleServer{refuses: test.refuses})
		w.lines = append(w.lines, sampleLine{time: w.now.Load(), text: "a"})
		for i, app := range []string{"web", "db", "web"} {
			w.mu.Lock()
			w.asked = nil
			w.mu.Unlock()
			req := w.request(time.Hour, model.TextSample{Lines: 10_000, Plain: true})
			req.Matchers = []model.Matcher{{Name: "app", Value: app, Match: func(v string) bool { return v == app }}}
			cursors, err := w.SelectText(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cursors {
				c.Close()
			}
			w.watch.Wait()
			sampled := test.scope == "selector" && app == "db"
			if last := w.asked[len(w.asked)-1]; len(w.asked) != test.asked[i] || strings.Contains(last, "stats by (_stream") == sampled {
				t.Errorf("%s: query %d asks for %q", test.scope, i, w.asked)
			}
			w.now.Add(1)
		}
		if n := testutil.ToFloat64(w.metrics.refused.WithLabelValues(formSamples, test.scope)); n != 1 {
			t.Errorf("%s: %v refusals are counted", test.scope, n)
		}
	}
}
