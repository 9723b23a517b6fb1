package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// fakeLoki keeps the lines of one stream. It serves query_range as Loki does, in pages and without the end of
// the range, and tail as Shale does: first the newest lines since the start, then whatever live sends.
type fakeLoki struct {
	url  string
	most int                            // lines that a query may ask for; 0: all
	live func(n int, send func(string)) // serves connection n, and ends it by returning

	mu      sync.Mutex
	lines   []fakeLine                // by time
	refuse  func(n int) (int, string) // gives the status and text that refuse query n, or 0
	more    string                    // members of each response, with a comma at the end
	queries int                       // so far
	tenant  string                    // of the last query
	conns   int                       // so far
	resent  int                       // lines of the past sent to connections after the first one
}

type fakeLine struct {
	at   int64
	text string
}

func newFakeLoki(t *testing.T, lines ...fakeLine) *fakeLoki {
	t.Helper()
	f := &fakeLoki{lines: lines}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

// secondsOf returns n lines, a second apart and two at each time.
func secondsOf(n int) (lines []fakeLine) {
	for i := range n {
		lines = append(lines, fakeLine{int64(1_700_000_000+i/2) * 1e9, fmt.Sprintf("<line> %d", i)})
	}
	return lines
}

// crowdOf returns n lines of one time, and one line a second before and one after them.
func crowdOf(n int) (lines []fakeLine) {
	const at = 1_700_000_001e9
	lines = append(lines, fakeLine{at - 1e9, "line 0."})
	for i := range n {
		lines = append(lines, fakeLine{at, fmt.Sprintf("line %d.", i+1)})
	}
	return append(lines, fakeLine{at + 1e9, fmt.Sprintf("line %d.", n+1)})
}

func (f *fakeLoki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	switch {
	case r.FormValue("query") == "{":
		http.Error(w, "parse error", http.StatusBadRequest)
	case r.URL.Path == "/loki/api/v1/tail":
		f.tail(w, r, start, limit)
	case r.URL.Path == "/loki/api/v1/query_range":
		f.query(w, r, start, limit)
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeLoki) query(w http.ResponseWriter, r *http.Request, start int64, limit int) {
	end, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queries++
	f.tenant = r.Header.Get("X-Scope-OrgID")
	if f.refuse != nil {
		if status, text := f.refuse(f.queries); status != 0 {
			http.Error(w, text, status)
			return
		}
	}
	if f.most > 0 && limit > f.most {
		http.Error(w, fmt.Sprintf("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", limit, f.most), http.StatusBadRequest)
		return
	}
	lines := slices.Clone(f.lines)
	if r.FormValue("direction") == "backward" {
		slices.Reverse(lines)
	}
	lines = slices.DeleteFunc(lines, func(l fakeLine) bool { return l.at < start || l.at >= end })
	fmt.Fprintf(w, `{"status":"success",%s"data":{"resultType":"streams","result":%s}}`, f.more, streamOf(lines[:min(limit, len(lines))]))
}

// streamOf writes lines as the streams of a response.
func streamOf(lines []fakeLine) string {
	values := [][2]string{}
	for _, l := range lines {
		values = append(values, [2]string{strconv.FormatInt(l.at, 10), l.text})
	}
	text, err := json.Marshal([]any{map[string]any{"stream": map[string]string{"app": "a", "b": "c"}, "values": values}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// add is a push.
func (f *fakeLoki) add(at int64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fakeLine{at, text})
	slices.SortStableFunc(f.lines, func(a, b fakeLine) int { return cmp.Compare(a.at, b.at) })
}

func (f *fakeLoki) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns
}

func (f *fakeLoki) tail(w http.ResponseWriter, r *http.Request, start int64, limit int) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	send := func(frame string) { _ = conn.Write(r.Context(), websocket.MessageText, []byte(frame)) }
	f.mu.Lock()
	f.conns++
	n := f.conns
	var past []fakeLine
	for _, l := range f.lines {
		if l.at >= start {
			past = append(past, l)
		}
	}
	past = past[max(0, len(past)-limit):]
	if n > 1 {
		f.resent += len(past)
	}
	f.mu.Unlock()
	if len(past) > 0 {
		send(`{"streams":` + streamOf(past) + `}`)
	}
	f.live(n, send)
	_ = conn.Close(websocket.StatusGoingAway, "bye")
}

// lastFrame is the time that a test has to see the last frame before the connection ends.
const lastFrame = 100 * time.Millisecond
