package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/lines"
)

// keptLine is a line in a logStore.
type keptLine struct {
	at       int64
	labels   string // {a="b", c="d"}
	text     string
	metadata map[string]string
}

func (l *keptLine) key() string {
	return fmt.Sprintf("%d|%s|%s|%v", l.at, l.labels, l.text, l.metadata)
}

// logStore is a server that keeps lines as Loki's protocol gives them, each once, and gives them back page by
// page.
type logStore struct {
	mu       sync.Mutex
	lines    []keptLine
	known    map[string]bool
	pushes   int
	refuse   func(push int) int // status to answer with instead; 0: none
	arrivals []string           // texts in the order of arrival
}

func newLogStore(t *testing.T) (*logStore, string) {
	t.Helper()
	s := &logStore{known: map[string]bool{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

func (s *logStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/loki/api/v1/query_range" {
		s.query(w, r)
		return
	}
	s.pushes++
	if s.refuse != nil {
		if code := s.refuse(s.pushes); code != 0 {
			http.Error(w, "not now", code)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Type") == "application/json" {
		err = s.takeJSON(body)
	} else if err == nil {
		if body, err = snappy.Decode(nil, body); err == nil {
			err = eachField(body, func(_ protowire.Number, stream []byte, _ uint64) error { return s.takeStream(stream) })
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// got reports whether a text has come, as part of a line.
func (s *logStore) got(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.arrivals, func(line string) bool { return strings.Contains(line, text) })
}

func (s *logStore) keep(l keptLine) {
	s.arrivals = append(s.arrivals, l.text)
	if !s.known[l.key()] {
		s.known[l.key()] = true
		s.lines = append(s.lines, l)
	}
}

func eachField(b []byte, field func(n protowire.Number, bytes []byte, number uint64) error) error {
	for len(b) > 0 {
		n, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			return protowire.ParseError(used)
		}
		b = b[used:]
		var bytes []byte
		var number uint64
		if kind == protowire.BytesType {
			bytes, used = protowire.ConsumeBytes(b)
		} else {
			number, used = protowire.ConsumeVarint(b)
		}
		if used < 0 {
			return protowire.ParseError(used)
		}
		b = b[used:]
		if err := field(n, bytes, number); err != nil {
			return err
		}
	}
	return nil
}

func (s *logStore) takeStream(b []byte) error {
	labels := ""
	return eachField(b, func(n protowire.Number, bytes []byte, _ uint64) error {
		if n == 1 {
			labels = string(bytes)
			return nil
		}
		l := keptLine{labels: labels, metadata: map[string]string{}}
		err := eachField(bytes, func(n protowire.Number, bytes []byte, _ uint64) error {
			switch n {
			case 1:
				return eachField(bytes, func(n protowire.Number, _ []byte, v uint64) error {
					l.at += int64(v) * map[protowire.Number]int64{1: 1e9, 2: 1}[n]
					return nil
				})
			case 2:
				l.text = string(bytes)
			case 3:
				name := ""
				return eachField(bytes, func(n protowire.Number, bytes []byte, _ uint64) error {
					if n == 1 {
						name = string(bytes)
					} else {
						l.metadata[name] = string(bytes)
					}
					return nil
				})
			}
			return nil
		})
		s.keep(l)
		return err
	})
}

func (s *logStore) takeJSON(b []byte) error {
	var push struct {
		Streams []struct {
			Stream map[string]string
			Values [][]json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &push); err != nil {
		return err
	}
	for _, st := range push.Streams {
		var ls []lines.Label
		for k, v := range st.Stream {
			ls = append(ls, lines.Label{Name: k, Value: v})
		}
		slices.SortFunc(ls, func(a, b lines.Label) int { return strings.Compare(a.Name, b.Name) })
		for _, v := range st.Values {
			l := keptLine{labels: lines.LabelText(ls), metadata: map[string]string{}}
			var at string
			if err := json.Unmarshal(v[0], &at); err != nil {
				return err
			}
			l.at, _ = strconv.ParseInt(at, 10, 64)
			if err := json.Unmarshal(v[1], &l.text); err != nil {
				return err
			}
			if len(v) > 2 {
				if err := json.Unmarshal(v[2], &l.metadata); err != nil {
					return err
				}
			}
			s.keep(l)
		}
	}
	return nil
}

func (s *logStore) query(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.ParseInt(r.FormValue("start"), 10, 64)
	to, _ := strconv.ParseInt(r.FormValue("end"), 10, 64)
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	wants := regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(r.FormValue("query"), -1)
	var found []keptLine
	for _, l := range s.lines {
		match := l.at >= from && l.at < to
		for _, want := range wants {
			match = match && strings.Contains(l.labels, want[1]+"="+strconv.Quote(want[2]))
		}
		if match {
			found = append(found, l)
		}
	}
	slices.SortStableFunc(found, func(a, b keptLine) int { return cmp.Compare(a.at, b.at) })
	found = found[:min(len(found), limit)]
	type result struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	byStream := map[string]*result{}
	var all []*result
	for _, l := range found {
		one := byStream[l.labels]
		if one == nil {
			one = &result{Stream: map[string]string{"service_name": "guessed"}}
			for _, m := range regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(l.labels, -1) {
				one.Stream[m[1]], _ = strconv.Unquote(m[2])
			}
			byStream[l.labels] = one
			all = append(all, one)
		}
		metadata := map[string]string{"detected_level": "info"}
		for k, v := range l.metadata {
			metadata[k] = v
		}
		one.Values = append(one.Values, []any{strconv.FormatInt(l.at, 10), l.text, map[string]any{"structuredMetadata": metadata}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "streams", "result": all}})
}
