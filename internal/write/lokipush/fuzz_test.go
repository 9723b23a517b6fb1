package lokipush

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/logs"
)

// walked parses a body and returns its lines, or the error.
func walked(t *testing.T, m message, body []byte) ([]string, error) {
	rules := logs.DefaultRules()
	b := &model.Batch{Signal: model.Logs}
	w := new(walker)
	var reserved int64
	w.start(logs.NewStreams(9, logs.StreamCacheBytes), &rules, body, b, func(n int64) error { reserved += n; return nil })
	err := w.walk(m)
	if int64(cap(b.Text.Bytes)) > 4*(reserved+int64(len(body)))+(1<<20) {
		t.Errorf("%d bytes are taken and %d reserved for a body of %d", cap(b.Text.Bytes), reserved, len(body))
	}
	if err != nil {
		return nil, err
	}
	var lines []string
	for i := range b.Keys {
		l := w.entries.CanonicalLabels(i)
		if err := l.Check(); err != nil || l.Key(9, model.Logs) != b.Keys[i] {
			t.Errorf("labels %s: %v", l, err)
		}
		for r := b.Text.Begin(i); r < b.Text.End(i); r++ {
			line, err := model.ParseLine(b.Text.Blob(int(r)))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %d %q %s", l, b.Text.Times[r], line.Text, line.Metadata))
		}
	}
	return lines, nil
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte{})
	f.Add(protobufOf(pushed{`{a="b"}`, []entry{{now, "line", []string{"x", "y", "a.b", "c"}}, {1, "", nil}}}))
	f.Add(protobufOf(pushed{`{a="b`, []entry{{now, "line", nil}}}, pushed{`{a='b'}`, []entry{{now, "level=warn", nil}}}))
	f.Add([]byte("\x0a\x04\x12\x02\x0a\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = walked(t, protobuf, body)
	})
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"streams":[{"stream":{"a":"b"},"values":[["1","line",{"x":"y"}],["2","\u00e9\n\ud83d\ude00"]]}]}`,
		`{"streams":[{"values":[["1",""]],"stream":{"a":1}}]}`, `{"streams":[{"stream":{"a":"b"},"values":[null,["-5","x",{},3]]}],"z":[{"y":-1.5e3}]}`,
		`{"streams":[{"stream":{"a":"\"`, "{\"streams\":[{\"stream\":{},\"values\":[[\"1\",\"\xff\x00\"]]}]}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := walked(t, jsonMessage, body)
		if err != nil {
			return
		}
		// The result is that of encoding/json, where that accepts the body too.
		var want struct {
			Streams []struct {
				Stream map[string]any      `json:"stream"`
				Values [][]json.RawMessage `json:"values"`
			} `json:"streams"`
		}
		if !utf8.Valid(body) || json.Unmarshal(body, &want) != nil || strings.Contains(string(body), "null") {
			return
		}
		n := 0
		for _, s := range want.Streams {
			n += len(s.Values)
		}
		if len(lines) > n {
			t.Fatalf("%d lines of %d", len(lines), n)
		}
		if len(want.Streams) != 1 || len(lines) != n {
			return // invalid labels, or the like
		}
		for i, v := range want.Streams[0].Values {
			var at, line string
			if len(v) < 2 || json.Unmarshal(v[0], &at) != nil || json.Unmarshal(v[1], &line) != nil {
				return
			}
			ns, _ := strconv.ParseInt(at, 10, 64)
			if want := fmt.Sprintf(" %d %q ", ns, line); !strings.Contains(lines[i], want) && !strings.ContainsRune(line, utf8.RuneError) {
				t.Errorf("%s has not %s", lines[i], want)
			}
		}
	})
}

func FuzzLegacyJSON(f *testing.F) {
	for _, s := range []string{
		`{"streams":[{"labels":"{a=\"b\"}","entries":[{"ts":"2026-01-01T00:00:00.5Z","line":"x"}]}]}`,
		`{"streams":[{"entries":[{"line":"x\n","ts":"1960-01-01T00:00:00+01:00"}],"labels":"{"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = walked(t, jsonMessage, body)
	})
}
