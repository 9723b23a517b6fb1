package push

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"
)

var record = flag.Bool("record", false, "write Loki's answers anew")

// request is a case of the receivers' tests.
type request struct {
	Name, Path, ContentType, ContentEncoding string
	Body                                     []byte
}

func TestRecorded(t *testing.T) {
	loki, err := New(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder string
		otlp   bool
	}{
		{"../../../internal/write/lokipush/testdata/", false},
		{"../../../internal/write/otlp/testdata/", true},
	} {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		for _, q := range requests(t, c.folder+"cases.jsonl") {
			r := httptest.NewRequest("POST", q.Path, bytes.NewReader(q.Body))
			r.RequestURI = q.Path
			r.Header.Set("Content-Type", q.ContentType)
			if q.ContentType == "" {
				r.Header.Set("Content-Type", "application/x-protobuf")
			}
			if q.ContentEncoding != "" {
				r.Header.Set("Content-Encoding", q.ContentEncoding)
			}
			a := loki.Ask(q.Name, r, c.otlp)
			if c.otlp { // its streams have no fixed order
				slices.SortFunc(a.Lines, func(a, b Line) int {
					return bytes.Compare(marshal(t, a), marshal(t, b))
				})
			}
			if err := e.Encode(a); err != nil {
				t.Fatal(err)
			}
		}
		file := c.folder + "loki.jsonl"
		if *record {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kept, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(kept, out.Bytes()) {
			t.Errorf("%s is not what Loki says: %v", file, err)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func requests(t *testing.T, file string) (out []request) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var r request
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
