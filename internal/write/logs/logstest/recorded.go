package logstest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

const (
	casesFile     = "testdata/cases.jsonl"
	responsesFile = "testdata/loki.jsonl"
)

// Case is a request. test/logql-oracle/push sends the cases to Loki.
type Case struct {
	Name, Path, ContentType, ContentEncoding string
	Body                                     []byte
}

// Response is Loki's response to a case at the time Now, with its default limits.
type Response struct {
	Name string
	// Refused is the error of the whole request. Errors are those of its lines.
	Refused string
	Errors  []string
	Lines   []Line
}

// Line is a stored line.
type Line struct {
	Labels, Metadata []string // name, value, ... in order
	Time             int64
	Line             []byte
}

// Recorded compares a receiver with Loki.
type Recorded struct {
	// AtLeast is the smallest acceptable number of cases.
	AtLeast int
	// Handler returns the receiver, which must push to p.
	Handler func(p *write.Path) http.Handler
	// Same reports whether our response means the same as Loki's, whose Errors come without advice on
	// Loki's settings.
	Same func(ours *httptest.ResponseRecorder, loki *Response) bool
	// Align removes, in place, the intended differences between the stored lines.
	Align func(ours, loki []Line)
}

// Run sends the cases to the receiver. Its responses and the lines that it stores must match Loki's. If
// Loki refused a request, the lines are not compared.
func (r *Recorded) Run(t *testing.T) {
	t.Helper()
	cases, responses := readLines[Case](t, casesFile), readLines[Response](t, responsesFile)
	if len(cases) < r.AtLeast || len(cases) != len(responses) {
		t.Fatalf("%d cases and %d responses", len(cases), len(responses))
	}
	for i, c := range cases {
		loki := &responses[i]
		if c.Name != loki.Name {
			t.Fatalf("the response to %s is for %s", c.Name, loki.Name)
		}
		for i := range loki.Errors {
			loki.Errors[i], _, _ = strings.Cut(loki.Errors[i], ". Please see")
		}
		j := &recorder{}
		limits := write.Limits{MaxAge: 7 * 24 * time.Hour, MaxFuture: 10 * time.Minute}
		p := write.New(write.Options{Seed: Seed, Head: j, Journal: j, Now: func() int64 { return Now }, Limits: limits})
		ours := Post(r.Handler(p), c.Path, c.Body, "Content-Type", c.ContentType, "Content-Encoding", c.ContentEncoding)
		if !r.Same(ours, loki) {
			t.Errorf("%s: %d %q, and Loki refuses it with %q and lines with %q", c.Name, ours.Code, ours.Body, loki.Refused, loki.Errors)
		}
		if loki.Refused != "" {
			continue
		}
		r.Align(j.lines, loki.Lines)
		if diff := cmp.Diff(loki.Lines, j.lines); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
}

// WriteCases rewrites the file of cases, which can then be sent to Loki.
func WriteCases(t *testing.T, cases []Case) {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	for _, c := range cases {
		if err := e.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(casesFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Post sends a body with headers, given as pairs of name and value.
func Post(h http.Handler, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func readLines[T any](t *testing.T, file string) (out []T) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// recorder is a journal that keeps lines for comparison.
type recorder struct {
	writetest.Unknown
	lines []Line
}

func (r *recorder) Append(_ context.Context, b *model.Batch) error {
	for i := range b.Keys {
		for at := b.Text.Begin(i); at < b.Text.End(i); at++ {
			line, err := model.ParseLine(b.Text.Blob(int(at)))
			if err != nil {
				return err
			}
			r.lines = append(r.lines, Line{pairs(b.Labels.At(i)), pairs(line.Metadata), b.Text.Times[at], bytes.Clone(line.Text)})
		}
	}
	return nil
}

func pairs(l model.Labels) (out []string) {
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		out = append(out, string(n), string(v))
	}
	return out
}
