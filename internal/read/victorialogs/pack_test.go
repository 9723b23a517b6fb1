package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// TestUnpacked: packed rows become those that they were made of, and others stay as they are.
func TestUnpacked(t *testing.T) {
	for _, test := range []struct{ cells, want string }{
		{`["2001-09-09T01:45:00Z 2"]`, "[a=x _time=2001-09-09T01:45:00Z n=2]"},
		{`["2001-09-09T01:45:00Z 2","2001-09-09T01:50:00Z 3"]`, "[a=x _time=2001-09-09T01:45:00Z n=2][a=x _time=2001-09-09T01:50:00Z n=3]"},
		{"", "[a=x]"},
		{`[]`, ""},
		{`"2001-09-09T01:45:00Z 2"]`, "an error"},
		{`[""]`, "an error"},
		{`["2001-09-09T01:45:00Z"]`, "an error"},
		{`["2001-09-09T01:45:00Z 2 3"]`, "an error"},
		{`["2001-09-09T01:45:00Z 2","`, "an error"},
	} {
		row, got := []field{{[]byte("a"), []byte("x")}}, ""
		if test.cells != "" {
			row = append(row, field{[]byte(packedField), []byte(test.cells)})
		}
		err := unpacked([]string{"_time", "n"}, func(row []field) error {
			var all []string
			for _, f := range row {
				all = append(all, string(f.name)+"="+string(f.value))
			}
			got += fmt.Sprint(all)
			return nil
		})(row)
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Error(err)
			}
			got = "an error"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.cells, got, test.want)
		}
	}
}

// TestPacked: rows of several buckets are packed. Those of few buckets, and of lines that are read, are not.
func TestPacked(t *testing.T) {
	asked := ""
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.FormValue("query") })
	look := func(cells *model.TextCells, span time.Duration, want string) {
		t.Helper()
		req := request()
		req.Range.Max, req.Cells = req.Range.Min+int64(span), cells
		if _, err := w.lines(context.Background(), req); err != nil {
			t.Error(err)
		}
		if _, got, _ := strings.Cut(asked, "| format"); got != want {
			t.Errorf("asked for %s, want %s", asked, want)
		}
	}
	minutes := &model.TextCells{Step: int64(time.Minute)}
	look(minutes, time.Hour, ` "<_time> <n> <times>" as cells | stats by (_stream) values(cells) cells`)
	look(&model.TextCells{Step: int64(time.Minute), Bytes: true}, time.Hour, ` "<_time> <n> <times> <bytes>" as cells | stats by (_stream) values(cells) cells`)
	look(minutes, 3*time.Minute, "")
	look(&model.TextCells{}, time.Hour, "")
	look(nil, time.Hour, "")
}

// TestPackedRefused: a server that does not pack rows is asked for them as they are, and so is one that
// refuses packed rows of a selector. Those of others are still packed then.
func TestPackedRefused(t *testing.T) {
	for _, test := range []struct {
		refuses string
		asked   []int32
		scope   string
	}{
		{packedField, []int32{3, 1, 1}, "server"}, // packed rows, rows as they are, and a probe
		{`"app"="web"`, []int32{3, 1, 1}, "selector"},
	} {
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			q := r.FormValue("query")
			switch {
			case !strings.Contains(q, packedField):
				io.WriteString(rw, `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:00Z","n":"2","times":"2"}`+"\n")
			case strings.Contains(q, test.refuses):
				http.Error(rw, "no", http.StatusBadRequest)
			case strings.Contains(q, "1970"):
			default:
				io.WriteString(rw, `{"_stream":"{app=\"web\"}","cells":"[\"2001-09-09T01:46:00Z 2 2\"]"}`+"\n")
			}
		})
		for i, app := range []string{"web", "db", "web"} {
			before := w.asked.Load()
			req := request()
			req.Range.Max, req.Cells = req.Range.Min+int64(time.Hour), &model.TextCells{Step: int64(time.Minute), Phase: -1}
			req.Matchers = []model.Matcher{{Name: "app", Value: app, Match: func(string) bool { return true }}}
			cursors, err := w.SelectText(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			if n := w.asked.Load() - before; n != test.asked[i] {
				t.Errorf("%s: query %d: %d requests, want %d", test.scope, i, n, test.asked[i])
			}
			for _, c := range cursors {
				if !c.Next(context.Background()) {
					t.Errorf("%s: query %d has no stream", test.scope, i)
				}
				c.Close()
			}
		}
		packed := !w.refusals.Lasts(formPacked)
		if n := testutil.ToFloat64(w.metrics.refused.WithLabelValues(formPacked, test.scope)); n != 1 || packed != (test.scope == "selector") {
			t.Errorf("%s: %v refusals are counted; others are packed: %v", test.scope, n, packed)
		}
	}
}
