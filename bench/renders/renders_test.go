package renders

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRun measures two servers, of which one gives another value for one panel, and fails at another.
func TestRun(t *testing.T) {
	serve := func(other bool) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			target, v := r.FormValue("target"), "0.1"
			switch {
			case other && target == "sumSeries(servers.*.app.m01)":
				v = "0.2"
			case other && target == "averageSeries(servers.*.app.m02)":
				http.Error(w, "no", http.StatusInternalServerError)
				return
			case other:
				v = "0.1000000000000001"
			}
			if r.FormValue("format") != "json" || r.FormValue("from") >= r.FormValue("until") {
				http.Error(w, "a bad request: "+r.URL.RawQuery, http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, `[{"target":%q,"datapoints":[[%s,60],[null,120]]}]`, target, v)
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, err := ParseServer(fmt.Sprintf("one=%s,%d", serve(false).URL, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	two, err := ParseServer("two=" + serve(true).URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := Options{Servers: []Server{one, two}, End: time.Unix(1_800_000_000, 0), Rounds: 2, Browser: 3, Log: io.Discard}
	if err := Run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	var refreshed bytes.Buffer
	if err := Refresh(t.Context(), Options{Servers: []Server{two}, End: o.End, Rounds: 2, Browser: 3, Log: io.Discard}, time.Millisecond, 3*time.Millisecond, &refreshed); err != nil {
		t.Fatal(err)
	}
	if text := refreshed.String(); !strings.Contains(text, "24 h | 300 |") || !strings.Contains(text, "| 3 |\n") || !strings.Contains(text, "1 year | 3 |") {
		t.Error(text)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	if len(rows) != 2*len(boards()) {
		t.Fatalf("%d rows:\n%s", len(rows), out.String())
	}
	for i, ending := range []string{"| 0 |  |", "| 2 | 196 of 200 |", "| 0 |  |", "| 2 | 196 of 200 |", "| 0 |  |", "| 0 | 2 of 2 |", "| 0 |  |", "| 0 | 2 of 2 |"} {
		if !strings.HasSuffix(rows[i], ending) {
			t.Errorf("row %d should end with %s: %s", i, ending, rows[i])
		}
	}
}

func TestParseServer(t *testing.T) {
	for _, text := range []string{"", "http://a", "a=b", "a=http://b,x"} {
		if _, err := ParseServer(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestFill: lines and files have the same points.
func TestFill(t *testing.T) {
	s := set{3, 5 * time.Minute, func(i int) string { return "a.b" + two(i) }}
	end := time.Unix(1_800_000_000, 0)
	var text bytes.Buffer
	n, err := lines(&text, []set{s}, end, io.Discard)
	if err != nil || n != 15 {
		t.Fatalf("%d points sent, %v", n, err)
	}
	var want strings.Builder
	for k := range 5 {
		for i := range 3 {
			file := whisperFile(i, first(s, end), 5)
			point := file[28+12*k:]
			fmt.Fprintf(&want, "a.b0%d %v %d\n", i, math.Float64frombits(binary.BigEndian.Uint64(point[4:])), binary.BigEndian.Uint32(point))
		}
	}
	if text.String() != want.String() || !strings.HasSuffix(text.String(), " 1800000000\n") {
		t.Errorf("lines:\n%s\nfiles:\n%s", text.String(), want.String())
	}
}
