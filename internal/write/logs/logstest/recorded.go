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
)

const (
	casesFile   = "testdata/cases.jsonl"
	answersFile = "testdata/loki.jsonl"
)

// Case is a request. Loki was asked the cases by test/logql-oracle/push.
type Case struct {
	Name, Path, ContentType, ContentEncoding string
	Body                                     []byte
}

// Answer is what Loki makes of a case at the time Now, with its default limits.
type Answer struct {
	Name string
	// Refused is the error of the whole request, and Errors are those of its lines.
	Refused string
	Errors  []string
	Lines   []Line
}

// Line is a line as it is stored.
type Line struct {
	Labels, Metadata []string // name, value, ... in order
	Time             int64
	Line             []byte
}

// Recorded is what a receiver and Loki are compared by.
type Recorded struct {
	// AtLeast is how many cases there must be.
	AtLeast int
	// Handler returns the receiver, which pushes to p.
	Handler func(p *write.Path) http.Handler
	// Same reports whether our answer says what Loki's does, whose Errors have no advice on Loki's settings.
	Same func(ours *httptest.ResponseRecorder, loki *Answer) bool
	// Align takes away, in place, what is meant to differ between the lines that are stored.
	Align func(ours, loki []Line)
}

// Run sends the cases to the receiver. Neither its answer nor the lines that it stores may differ from Loki's, which is not
// asked about the lines of a request that it refuses.
func (r *Recorded) Run(t *testing.T) {
	t.Helper()
	cases, answers := readLines[Case](t, casesFile), readLines[Answer](t, answersFile)
	if len(cases) < r.AtLeast || len(cases) != len(answers) {
		t.Fatalf("%d cases and %d answers", len(cases), len(answers))
	}
	for i, c := range cases {
		loki := &answers[i]
		if c.Name != loki.Name {
			t.Fatalf("the answer to %s is for %s", c.Name, loki.Name)
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

// WriteCases writes the cases anew, for Loki to be asked.
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

// Post sends a body with headers, each a name and a value.
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

// recorder is a journal that keeps lines as they are compared.
type recorder struct {
	Unknown
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
