package victorialogs

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestListings: queries at one time share one list of the streams of their account, and so do those of some
// seconds after it for ranges within its own.
func TestListings(t *testing.T) {
	var lists, everything atomic.Int32
	broken := atomic.Bool{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		q := r.FormValue("query")
		if !strings.Contains(q, "uniq by (_stream)") {
			http.Error(rw, "not asked for", http.StatusBadRequest)
			return
		}
		lists.Add(1)
		if broken.Load() {
			http.Error(rw, "broken", http.StatusBadRequest)
			return
		}
		n := 3
		if strings.HasSuffix(q, " limit 5001") {
			everything.Add(1)
			if r.Header.Get("AccountID") == "9" {
				n = listedStreams + 1
			}
		}
		for i := range n {
			fmt.Fprintf(rw, `{"_stream":"{app=\"%s\",pod=\"%d\"}"}`+"\n", r.Header.Get("AccountID"), i)
		}
	})
	w.listings.every = time.Hour
	get := func(account uint32, r model.TimeRange, fresh bool) (all [][]byte, err error) {
		req := request()
		req.Range, req.Cost.Fresh, req.Cells = r, fresh, &model.TextCells{Step: 1e9}
		d := &directory{source: w.Source, account: access{Account: Account{ID: account}}, req: req, filter: w.filterOf(req), streams: newStreamSet(w.Source, req)}
		all, _, err = w.listings.get(context.Background(), d)
		d.release()
		if used := req.Quota.Charged(); used != (model.Charge{}) {
			t.Errorf("%v is still taken", used)
		}
		return all, err
	}
	look := func(account uint32, r model.TimeRange, fresh bool, want int32) {
		t.Helper()
		before := lists.Load()
		all, err := get(account, r, fresh)
		if err != nil || len(all) != 3 || !strings.Contains(string(all[0]), fmt.Sprintf("%q", fmt.Sprint(account))) {
			t.Errorf("%d streams, %v: %.80s", len(all), err, all)
		}
		if n := lists.Load() - before; n != want {
			t.Errorf("%d lists were asked for, want %d", n, want)
		}
	}
	r := model.TimeRange{Min: 1e18, Max: 1e18 + 1e9}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := get(1, r, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if lists.Load() != 1 || everything.Load() != 1 {
		t.Errorf("%d lists for queries at one time", lists.Load())
	}
	look(1, model.TimeRange{Min: r.Min + 1, Max: r.Max - 1}, false, 0)
	look(1, r, true, 1)
	look(2, r, false, 1) // of another account
	look(1, r, false, 0)
	look(1, model.TimeRange{Min: r.Min, Max: r.Max + 1}, false, 1)
	look(9, r, false, 2) // it has many
	look(9, r, false, 1)
	w.listings.every = time.Nanosecond
	look(1, r, false, 1) // an old one
	broken.Store(true)
	if _, err := get(1, r, false); err == nil {
		t.Error("no error")
	}
	broken.Store(false)
	look(1, r, false, 1)
}
