package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// TestListingsOfTenants: a tenant does not wait for a list that waits for the turn of another one, although
// both have one account.
func TestListingsOfTenants(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, `{"_stream":"{app=\"web\"}"}`+"\n") })
	w.listings.every = time.Hour
	get := func(ctx context.Context) error {
		req := request()
		d := &directory{source: w.Source, req: req, filter: w.filterOf(req), streams: newStreamSet(w.Source, req)}
		defer d.release()
		_, _, err := w.listings.get(ctx, d)
		return err
	}
	ctx, cancel := context.WithTimeout(callerOf("quiet"), 10*time.Second)
	defer cancel()
	for _, tenant := range []string{"quiet", "flood", "flood", "flood"} {
		leave, err := w.client.pace.Enter(callerOf(tenant), true)
		if err != nil {
			t.Fatal(err)
		}
		if tenant == "quiet" {
			leave()
		} else {
			defer leave()
		}
	}
	flood, end := context.WithCancel(callerOf("flood"))
	ended := make(chan error)
	go func() { ended <- get(flood) }()
	for w.client.pace.Waiting("flood") == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := get(ctx); err != nil {
		t.Errorf("a quiet tenant: %v", err)
	}
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestListingsOverlap: a wider list that is asked for while a narrower one is on its way leaves the sum of
// their bytes right, and a list that panics lets others go on.
func TestListingsOverlap(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, `{"_stream":"{app=\"web\"}"}`+"\n") })
	w.listings.every = time.Hour
	get := func(width int64, quota *model.Quota) error {
		req := request()
		req.Range.Max = req.Range.Min + width
		req.Quota = quota
		d := &directory{source: w.Source, req: req, filter: w.filterOf(req), streams: newStreamSet(w.Source, req)}
		defer d.release()
		_, _, err := w.listings.get(context.Background(), d)
		return err
	}
	var all sync.WaitGroup
	for i := range int64(50) {
		all.Go(func() {
			if err := get(i, request().Quota); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	kept := 0
	for _, l := range w.listings.of {
		kept += l.bytes
	}
	if want := len(`{app="web"}`); kept != want || w.listings.bytes != want {
		t.Errorf("%d bytes are kept, and %d counted, want %d", kept, w.listings.bytes, want)
	}
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			_ = get(1000, nil)
		}()
	}
	if n := w.client.pace.Running(); n != 0 {
		t.Errorf("%d turns were not given back", n)
	}
}

// TestListingsOfOwn: where a stream that a request does not select keeps streams from being grouped, the next
// requests ask for their own streams only.
func TestListingsOfOwn(t *testing.T) {
	everything := 0
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, `{"_stream":"{app=\"web\",pod=\"1\"}"}`+"\n")
		if strings.HasSuffix(r.FormValue("query"), " limit 5001") {
			everything++
			io.WriteString(rw, `{"_stream":"{app=\"a\\\"b\"}"}`+"\n")
		}
	})
	w.listings.every = time.Nanosecond
	for range 3 {
		req := request()
		req.Cells = &model.TextCells{Step: 1e9, Grouped: true, Labels: []string{"app"}}
		d := &directory{source: w.Source, req: req, filter: w.filterOf(req), streams: newStreamSet(w.Source, req)}
		g, err := d.groupingOf(callerOf("x"))
		if err != nil || !g.plain {
			t.Errorf("%+v, %v", g, err)
		}
		d.release()
	}
	if everything != 1 {
		t.Errorf("all streams are listed %d times", everything)
	}
}
