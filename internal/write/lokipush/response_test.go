package lokipush

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

func TestAnswers(t *testing.T) {
	js := []string{"Content-Type", "application/json"}
	long := strings.Repeat("x", 11)
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		text    string
		stored  int
	}{
		{"nothing", "", nil, 400, "push body: not a snappy block", 0},
		{"an empty block", "\x00", nil, 422, "error at least one valid stream is required for ingestion", 0},
		{"no streams", `{}`, js, 422, "error at least one valid stream is required for ingestion", 0},
		{"null streams", `{"streams":null}`, js, 422, "error at least one valid stream is required for ingestion", 0},
		{"a stream without lines", `{"streams":[{"stream":{"a":"b"}}]}`, js, 204, "", 0},
		{"another encoding", `{}`, append(slices.Clip(js), "Content-Encoding", "br"), 400, `Content-Encoding "br" not supported; expected snappy, gzip, deflate or zstd`, 0},
		{"a bad type", `{}`, []string{"Content-Type", "a/b/c"}, 400, "Content-Type", 0},
		{"a bad tenant", `{}`, append(slices.Clip(js), "X-Scope-OrgID", "a|b"), 400, `tenant ID "a|b" contains the character '|'`, 0},
		{"labels that are no labels", `{"streams":[{"stream":{"a-b":"c"},"values":[["%d","1"]]},{"stream":{"a":"b"},"values":[["%d","2"]]}]}`, js, 400,
			`couldn't parse labels: 1:3: parse error: unexpected character inside braces: '-'`, 1},
		{"labels that are missing", `{"streams":[{"values":[["%d","1"]]}]}`, js, 204, "", 1},
		{"labels that are no object", `{"streams":[{"stream":[],"values":[["%d","1"]]}]}`, js, 400, `stream labels that are neither an object nor a string at byte 22 of the decoded body`, 0},
		{"labels that are null", `{ "streams":[{"stream":null,"values":[["%d","1"]]}]}`, js, 400, `stream labels that are neither an object nor a string at byte 23 of the decoded body`, 0},
		{"a label that is a number", `{"streams":[{"stream":{"a":1},"values":[["%d","1"]]}]}`, js, 204, ``, 1},
		{"a label that is an object", `{"streams":[{"stream":{"a":{}},"values":[["%d","1"]]}]}`, js, 400, `a label's value that is not a string at byte 27 of the decoded body`, 0},
		{"a long line", `{"streams":[{"stream":{"a":"b"},"values":[["%d","` + long + `"],["%d","` + long + `"],["%d","ok"]]}]}`, js, 400,
			`2 errors like: max entry size '10' bytes exceeded for stream '{a="b", service_name="unknown_service"}' while adding an entry with length '11' bytes`, 1},
		{"much metadata", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1",{"a":"` + long + long + `"}]]}]}`, js, 400,
			`stream '{a="b", service_name="unknown_service"}' has structured metadata too large: '23' bytes, limit: '20' bytes`, 0},
		{"many metadata", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1",{"a":"1","b":"1","c":"1"}]]}]}`, js, 400,
			`stream '{a="b", service_name="unknown_service"}' has too many structured metadata labels: '3', limit: '2'`, 0},
		{"metadata without a name", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1",{"":"1"}]]}]}`, js, 400,
			`stream '{a="b", service_name="unknown_service"}' has structured metadata with an invalid name '': label name is empty`, 0},
		{"several reasons", `{"streams":[{"stream":{"a":"b"},"values":[["1","1"],["%d","` + long + `"]]}]}`, js, 400,
			`1 errors like: entry for stream '{a="b", service_name="unknown_service"}' has timestamp too old: 1970-01-01T00:00:00Z, oldest acceptable timestamp is: 2026-02-28T23:00:00Z; 1 errors like: max entry size '10' bytes exceeded for stream '{a="b", service_name="unknown_service"}' while adding an entry with length '11' bytes`, 0},
		{"several reasons in several streams", `{"streams":[{"stream":{"a":"b"},"values":[["%d","ok"],["%d","` + long + `"],["1","1"]]},{"stream":{"a":"c"},"values":[["9223372036854775807","1"],["%d","1",{"":"1"}]]}]}`, js, 400,
			`1 errors like: max entry size '10' bytes exceeded for stream '{a="b", service_name="unknown_service"}' while adding an entry with length '11' bytes; 1 errors like: entry for stream '{a="b", service_name="unknown_service"}' has timestamp too old: 1970-01-01T00:00:00Z, oldest acceptable timestamp is: 2026-02-28T23:00:00Z; ` +
				`1 errors like: entry for stream '{a="c", service_name="unknown_service"}' has timestamp too new: 2262-04-11T23:47:16Z; 1 errors like: stream '{a="c", service_name="unknown_service"}' has structured metadata with an invalid name '': label name is empty`, 1},
		{"a time that is no string", `{"streams":[{"stream":{"a":"b"},"values":[[1,"1"]]}]}`, js, 400, "a timestamp that is not a string at byte 43 of the decoded body", 0},
		{"a time that is no number", `{"streams":[{"stream":{"a":"b"},"values":[["x","1"]]}]}`, js, 400, "a timestamp that is not a number of nanoseconds", 0},
		{"a time that is too large", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1"],["9223372036854775808","1"],["%d","2"]]}]}`, js, 400,
			"entry has a timestamp of 9223372036854775808 nanoseconds, which is not between the years 1677 and 2262", 2},
		{"a time of 20 digits", `{"streams":[{"stream":{"a":"b"},"values":[["99999999999999999999","1"],["%d","2"]]}]}`, js, 400,
			"entry has a timestamp of 99999999999999999999 nanoseconds, which is not between the years 1677 and 2262", 1},
		{"a time of many digits", `{"streams":[{"stream":{"a":"b"},"values":[["-` + strings.Repeat("8", 1000) + `","1"],["%d","2"]]}]}`, js, 400,
			"entry has a timestamp of -" + strings.Repeat("8", 39) + "... nanoseconds, which is not between the years 1677 and 2262", 1},
		{"the last time", `{"streams":[{"stream":{"a":"b"},"values":[["09223372036854775807","1"],["%d","2"]]}]}`, js, 400, "has timestamp too new: 2262-04-11T23:47:16Z", 1},
		{"the first time", `{"streams":[{"stream":{"a":"b"},"values":[["-9223372036854775808","1"],["%d","2"]]}]}`, js, 400, "has timestamp too old: 1677-09-21T00:12:43Z", 1},
		{"a time before the first", `{"streams":[{"stream":{"a":"b"},"values":[["-9223372036854775809","1"],["%d","2"]]}]}`, js, 400,
			"entry has a timestamp of -9223372036854775809 nanoseconds, which is not between the years 1677 and 2262", 1},
		{"a time that is a sign", `{"streams":[{"stream":{"a":"b"},"values":[["-","1"],["%d","2"]]}]}`, js, 400, "a timestamp that is not a number of nanoseconds at byte 43 of the decoded body", 0},
		{"a time of digits and a letter", `{"streams":[{"stream":{"a":"b"},"values":[["99999999999999999999x","1"]]}]}`, js, 400, "a timestamp that is not a number of nanoseconds at byte 43 of the decoded body", 0},
		{"a line that is no string", `{"streams":[{"stream":{"a":"b"},"values":[["%d",1]]}]}`, js, 400, "a line that is not a string", 0},
		{"no line", `{"streams":[{"stream":{"a":"b"},"values":[["%d"]]}]}`, js, 204, "", 1},
		{"no time", `{"streams":[{"stream":{"a":"b"},"values":[[],["%d","1"]]}]}`, js, 400, "entry has no timestamp", 1},
		{"a null for a line", `{"streams":[{"stream":{"a":"b"},"values":[null,["%d","1"]]}]}`, js, 204, "", 1},
		{"metadata that is no object", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1","x"]]}]}`, js, 400, `JSON that has no '{'`, 0},
		{"metadata that is a number", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1",{"a":1}]]}]}`, js, 400, "the value of structured metadata that is not a string", 0},
		{"more than there is", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1",{},[1,{"x":null}],2e5]]}],"other":[true,false,{"a":-1}]}`, js, 204, "", 1},
		{"the labels behind the lines", `{"streams":[{"values":[["%d","1"]],"x":1,"stream":{"a":"b"},"y":{}}]}`, js, 204, "", 1},
		{"lines twice", `{"streams":[{"values":[],"stream":{"a":"b"},"values":[]}]}`, js, 400, "a stream with entries twice", 0},
		{"labels twice", `{"streams":[{"stream":{"a":"b"},"values":[],"stream":{"a":"b"}}]}`, js, 400, "a stream with labels twice", 0},
		{"half a surrogate", `{"streams":[{"stream":{"a":"b"},"values":[["%d","\ud800x"]]}]}`, js, 400, "a line with an escape that JSON does not have", 0},
		{"two bodies", `{"streams":[]}{"streams":[]}`, js, 400, "more than one JSON value", 0},
		{"a comma too many", `{"streams":[],}`, js, 400, "JSON with a trailing comma", 0},
		{"cut off", `{"streams":[{"stream":{"a":"b"},"values":[["%d","1"`, js, 400, "JSON that is cut off", 0},
		{"deep", `{"x":` + strings.Repeat("[", 100), js, 400, "JSON that is nested too deeply", 0},
		{"no JSON", `hello`, js, 400, "JSON that has no '{'", 0},
	} {
		s := &logstest.Store{}
		h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}, func(r *logs.Rules) {
			r.MaxLineBytes, r.MaxMetadataBytes, r.MaxMetadataEntries = 10, 20, 2
		})
		w := logstest.Post(h, Path, []byte(strings.ReplaceAll(c.body, "%d", fmt.Sprint(now))), c.headers...)
		if w.Code != c.status || c.text == "" && w.Body.Len() > 0 || !strings.Contains(w.Body.String(), c.text) || strings.HasPrefix(w.Body.String(), "invalid: ") {
			t.Errorf("%s: %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.text)
		}
		if n := len(s.Take()); n != c.stored {
			t.Errorf("%s: %d lines are stored, want %d", c.name, n, c.stored)
		}
	}
}

// A body that is not what its headers say gets a hint.
func TestHints(t *testing.T) {
	js := []string{"Content-Type", "application/json"}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	asJSON, asProtobuf := jsonOf(pushed{`{"app":"b"}`, []entry{{now, "line", nil}}}), protobufOf(pushed{`{app="b"}`, []entry{{now, "line", nil}}})
	for _, c := range []struct {
		name    string
		body    []byte
		headers []string
		text    string
	}{
		{"JSON without a type", asJSON, nil, "; the body looks like JSON: send it with Content-Type: application/json"},
		{"JSON as curl -d sends it", append([]byte(" \n"), asJSON...), form, "; the body looks like JSON: send it with Content-Type: application/json"},
		{"empty JSON without a type", []byte("{ }"), nil, "; the body looks like JSON: send it with Content-Type: application/json"},
		{"protobuf that is not compressed", asProtobuf, nil, "; the body looks like protobuf that is not compressed: send it as a snappy block"},
		{"protobuf as JSON", asProtobuf, js, "; the body looks like protobuf: send it with Content-Type: application/x-protobuf"},
		{"a block as JSON", compress(t, "snappy", asProtobuf), js, "; the body looks like protobuf: send it with Content-Type: application/x-protobuf"},
		{"a long block as JSON", compress(t, "snappy", protobufOf(pushed{`{app="b"}`, slices.Repeat([]entry{{now, "line", nil}}, 1000)})), js, "; the body looks like protobuf: send it with Content-Type: application/x-protobuf"},
		{"gzip as nothing, JSON", compress(t, "gzip", asJSON), js, "; the body looks like gzip: send it with Content-Encoding: gzip"},
		{"gzip as nothing, protobuf", compress(t, "gzip", asProtobuf), nil, "; the body looks like gzip: send it with Content-Encoding: gzip"},
		{"gzip as deflate", compress(t, "gzip", asJSON), append(slices.Clip(js), "Content-Encoding", "deflate"), "; the body looks like gzip: send it with Content-Encoding: gzip"},
		{"zstd as nothing", compress(t, "zstd", asJSON), js, "; the body looks like zstd: send it with Content-Encoding: zstd"},
		{"JSON as gzip", asJSON, append(slices.Clip(js), "Content-Encoding", "gzip"), "; the body looks like JSON that is not compressed: send it without Content-Encoding"},
		{"LZ4", []byte{0x04, 0x22, 0x4d, 0x18, 0x60}, js, "; the body looks like lz4; expected snappy, gzip, deflate, zstd"},
		{"text", []byte("hello, world"), js, "JSON that has no '{' at byte 0 of the decoded body"},
		{"text without a type", []byte("hello, world"), nil, "corrupt input"},
		{"broken JSON", []byte(`{"streams":[`), js, "JSON that is cut off at byte 12 of the decoded body"},
		{"a broken block", compress(t, "snappy", asProtobuf)[:20], nil, "corrupt input"},
	} {
		w := logstest.Post(newHandler(&logstest.Store{}, write.Limits{MaxFuture: time.Hour}, nil), Path, c.body, c.headers...)
		if w.Code != http.StatusBadRequest || !strings.HasSuffix(w.Body.String(), c.text+"\n") {
			t.Errorf("%s: %d %s, want %s", c.name, w.Code, w.Body, c.text)
		}
	}
}

// What is refused leaves a line in the log, with the tenant and the first of the rows.
func TestRefusalsAreLogged(t *testing.T) {
	var out strings.Builder
	s := &logstest.Store{}
	p := write.New(write.Options{Seed: logstest.Seed, Head: s, Journal: s, Limits: write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}, Now: func() int64 { return now },
		Logger: slog.New(slog.NewTextHandler(&out, nil))})
	h := New(Options{Sink: p, Rules: logs.DefaultRules()})
	body := `{"streams":[{"stream":{"a":"b"},"values":[["1","1"],["2","1"],["9223372036854775807","1"],["%d","` + strings.Repeat("x", 300_000) + `"]]}]}`
	for range 2 {
		logstest.Post(h, Path, []byte(fmt.Sprintf(body, now)), "Content-Type", "application/json", "X-Scope-OrgID", "team-a")
		logstest.Post(h, Path, []byte("{"), "Content-Type", "application/json", "X-Scope-OrgID", "team-b")
		logstest.Post(h, Path, []byte("{"), "Content-Type", "a/b/c")
		logstest.Post(h, Path, []byte("{}"), "Content-Type", "application/json", "X-Scope-OrgID", "a/b")
	}
	for _, want := range []string{
		`msg="rows refused" tenant=team-a reason=too_old rows="2 lines" first="entry for stream '{a=\"b\", service_name=\"unknown_service\"}' has timestamp too old: 1970-01-01T00:00:00Z,`,
		`tenant=team-a reason=too_far_in_future rows="1 line"`,
		`tenant=team-a reason=line_too_long rows="1 line"`,
		`msg="request refused" tenant=team-b reason=400 error="JSON that is cut off at byte 1 of the decoded body" not_logged=0`,
		`tenant=anonymous reason=400 error="Content-Type`,
		`tenant="" reason=400 error="tenant ID \"a/b\" contains`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}

// A refusal for age names the setting if it is not the one that Loki's text is about.
func TestRetentionRefuses(t *testing.T) {
	for _, c := range []struct{ setting, text string }{
		{"", "oldest acceptable timestamp is: 2026-02-28T23:00:00Z\n"},
		{"retention", "oldest acceptable timestamp is: 2026-02-28T23:00:00Z (limit: retention)\n"},
	} {
		h := newHandler(&logstest.Store{}, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour, AgeSetting: c.setting}, nil)
		w := logstest.Post(h, Path, []byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","1"]]}]}`), "Content-Type", "application/json")
		if w.Code != http.StatusBadRequest || !strings.HasSuffix(w.Body.String(), c.text) {
			t.Errorf("%q: %d %s", c.setting, w.Code, w.Body)
		}
	}
}

// An empty value in structured metadata counts as absent, also where a level is looked for.
func TestEmptyLevel(t *testing.T) {
	for _, c := range []struct{ line, metadata, want string }{
		{"error boom", `{"level":""}`, `{detected_level="error"}`},
		{"error boom", `{"lvl":""}`, `{detected_level="error"}`},
		{"error boom", `{"Level":"","SEVERITY_TEXT":""}`, `{detected_level="error"}`},
		{"error boom", `{"detected_level":""}`, `{detected_level="error"}`},
		{"boom", `{"level":"","severity":"warn"}`, `{detected_level="warn", severity="warn"}`},
		{"boom", `{"severity":"warn","level":""}`, `{detected_level="warn", severity="warn"}`},
		{"boom", `{"level":"warn","level":""}`, `{detected_level="unknown"}`},
		{"boom", `{"level":"","level":"warn"}`, `{detected_level="warn", level="warn"}`},
		{"boom", `{"detected_level":"","level":"dbg"}`, `{detected_level="debug", level="dbg"}`},
		{"error boom", `{"severity_number":"","level":""}`, `{detected_level="error"}`},
		{"error boom", `{"level":"","severity_number":"9"}`, `{detected_level="info", severity_number="9"}`},
	} {
		s := &logstest.Store{}
		h := newHandler(s, write.Limits{MaxFuture: time.Hour}, nil)
		body := fmt.Sprintf(`{"streams":[{"stream":{"a":"b"},"values":[["%d",%q,%s]]}]}`, now, c.line, c.metadata)
		w := logstest.Post(h, Path, []byte(body), "Content-Type", "application/json")
		want := []string{fmt.Sprintf(`{a="b", service_name="unknown_service"} 0 %q %s`, c.line, c.want)}
		if diff := cmp.Diff(want, s.Take()); w.Code != http.StatusNoContent || diff != "" {
			t.Errorf("%s: %d %s %s", c.metadata, w.Code, w.Body, diff)
		}
	}
}

// The cache remembers what is wrong with labels, but not where in a body they were.
func TestBadLabelsAreFoundInEachBody(t *testing.T) {
	h := newHandler(&logstest.Store{}, write.Limits{MaxFuture: time.Hour}, nil)
	for n := range 3 {
		body := strings.Repeat(" ", n) + fmt.Sprintf(`{"streams":[{"stream":null,"values":[["%d","1"]]}]}`, now)
		w := logstest.Post(h, Path, []byte(body), "Content-Type", "application/json")
		if want := fmt.Sprintf("at byte %d of the decoded body", 22+n); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
}

// A service_name does not count as a label, whether it was sent or derived.
func TestServiceNameIsNoLabelTooMany(t *testing.T) {
	labels := func(n int, more string) string {
		var sb strings.Builder
		for i := range n {
			fmt.Fprintf(&sb, `"l%d":"v",`, i)
		}
		return strings.TrimSuffix(sb.String()+more, ",")
	}
	for _, c := range []struct {
		name, labels string
		status       int
	}{
		{"64 and none", labels(64, ""), 204},
		{"64 of which one becomes it", labels(63, `"app":"a"`), 204},
		{"64 and it", labels(64, `"service_name":"s"`), 204},
		{"65 and none", labels(65, ""), 400},
		{"65 and it", labels(65, `"service_name":"s"`), 400},
	} {
		s := &logstest.Store{}
		h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxLabels: 64}, func(r *logs.Rules) { r.MaxLabels = 64 })
		w := logstest.Post(h, Path, []byte(fmt.Sprintf(`{"streams":[{"stream":{%s},"values":[["%d","1"]]}]}`, c.labels, now)), "Content-Type", "application/json")
		if w.Code != c.status || c.status == 400 && !strings.HasSuffix(w.Body.String(), "has 65 label names; limit 64\n") {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if n := len(s.Take()); c.status == 204 && n != 1 || c.status == 400 && n != 0 {
			t.Errorf("%s: %d lines are stored", c.name, n)
		}
	}
}

func TestMalformedProtobuf(t *testing.T) {
	good := protobufOf(pushed{`{a="b"}`, []entry{{now, "line", []string{"x", "y"}}}})
	for n := 1; n < len(good); n++ {
		s := &logstest.Store{}
		h := newHandler(s, write.Limits{MaxFuture: time.Hour}, nil)
		w := logstest.Post(h, Path, snappy.Encode(nil, good[:n]))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "at byte") || len(s.Take()) > 0 {
			t.Errorf("cut off at %d: %d %s", n, w.Code, w.Body)
		}
	}
	for name, b := range map[string][]byte{
		"a stream that is a number":     {0x08, 1},
		"labels that are a number":      message1(nil, 1, []byte{0x08, 1}),
		"an entry that is a number":     message1(nil, 1, []byte{0x10, 1}),
		"a line that is a number":       message1(nil, 1, message1(nil, 2, []byte{0x10, 1})),
		"a time that is a string":       message1(nil, 1, message1(nil, 2, message1(nil, 1, message1(nil, 1, nil)))),
		"metadata that is a number":     message1(nil, 1, message1(nil, 2, []byte{0x18, 1})),
		"a name that is a number":       message1(nil, 1, message1(nil, 2, message1(nil, 3, []byte{0x08, 1}))),
		"a group":                       {0x1b},
		"a field of number zero":        {0x00},
		"a tag of more than ten bytes":  {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"an unknown field that is long": {0x12, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		w := logstest.Post(newHandler(&logstest.Store{}, write.Limits{}, nil), Path, snappy.Encode(nil, b))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "at byte") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Fields may come in any order and more than once, and unknown ones are skipped.
func TestOddProtobuf(t *testing.T) {
	e := message1(nil, 2, []byte("line"))
	e = append(e, 0x28, 1)                                                      // field 5
	e = message1(e, 3, message1(message1(nil, 2, []byte("y")), 1, []byte("x"))) // value before name
	e = message1(e, 4, message1(nil, 1, []byte("parsed")))
	e = message1(e, 1, binary.AppendUvarint([]byte{0x18, 7, 0x10, 5, 0x08}, uint64(now/1e9)))
	b := message1(nil, 2, e)
	b = append(b, 0x18, 9) // hash
	b = message1(b, 1, []byte(`{a="first"}`))
	b = message1(b, 1, []byte(`{a="b"}`))
	body := append(message1(nil, 2, []byte("format")), message1(nil, 1, b)...)
	s := &logstest.Store{}
	w := logstest.Post(newHandler(s, write.Limits{MaxFuture: time.Hour}, nil), Path, snappy.Encode(nil, body))
	want := []string{`{a="b", service_name="unknown_service"} 5 "line" {detected_level="unknown", x="y"}`}
	if diff := cmp.Diff(want, s.Take()); w.Code != http.StatusNoContent || diff != "" {
		t.Errorf("%d %s %s", w.Code, w.Body, diff)
	}
	// Times that do not exist.
	for _, ts := range [][]byte{{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, {0x10, 0xff, 0xff, 0xff, 0xff, 0x0f}, {0x10, 0x80, 0x94, 0xeb, 0xdc, 0x03}} {
		b := message1(message1(nil, 1, []byte(`{a="b"}`)), 2, message1(nil, 1, ts))
		w := logstest.Post(newHandler(s, write.Limits{}, nil), Path, snappy.Encode(nil, message1(nil, 1, b)))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not between the years 1677 and 2262") {
			t.Errorf("%x: %d %s", ts, w.Code, w.Body)
		}
	}
}

func TestStoreErrors(t *testing.T) {
	var lines [10]any // the whole burst of a line a second
	for i := range lines {
		lines[i] = []string{fmt.Sprint(now), fmt.Sprint(i)}
	}
	body, _ := json.Marshal(map[string]any{"streams": []any{map[string]any{"stream": map[string]string{"a": "b"}, "values": lines}}})
	s := &logstest.Store{}
	s.Fail(model.ErrTransient)
	reg := prometheus.NewRegistry()
	p := write.New(write.Options{Seed: logstest.Seed, Head: s, Journal: s, Now: func() int64 { return now }, Limits: write.Limits{TenantLines: 1, MaxBodyBytes: 1000, MaxDecodedBytes: 1000, MaxInflightBytes: 1 << 20}})
	h := New(Options{Sink: p, Rules: logs.DefaultRules(), Registerer: reg})
	if w := logstest.Post(h, Path, body, "Content-Type", "application/json"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.Fail(nil)
	for i, want := range []int{http.StatusNoContent, http.StatusTooManyRequests} {
		if w := logstest.Post(h, Path, body, "Content-Type", "application/json"); w.Code != want || i == 1 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	for _, c := range []struct{ encoding string }{{""}, {"gzip"}, {"zstd"}} {
		large := compress(t, c.encoding, []byte(strings.Repeat(" ", 1001)))
		if w := logstest.Post(h, Path, large, "Content-Type", "application/json", "Content-Encoding", c.encoding); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", c.encoding, w.Code, w.Body)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, Path, nil)
	w := logstest.Post(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h.ServeHTTP(w, r) }), Path, nil)
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	p.Close()
	if w := logstest.Post(h, Path, body, "Content-Type", "application/json"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if n := testutil.ToFloat64(h.metrics.Lines); n != 10 {
		t.Errorf("%g lines are counted", n)
	}
	if n := testutil.ToFloat64(h.metrics.Requests.WithLabelValues("json", "204")); n != 1 {
		t.Errorf("%g requests are counted", n)
	}
}
