package lokipush

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

var rewrite = flag.Bool("rewrite", false, "write the cases anew; go test -record in test/logql-oracle/push then asks Loki")

// Our responses are those that Loki gave to the same cases, which test/logql-oracle/push recorded.
// docs/loki-push.md lists the intended differences.
func TestLokiSaysTheSame(t *testing.T) {
	if *rewrite {
		logstest.WriteCases(t, allCases())
		return
	}
	r := logstest.Recorded{
		AtLeast: 50,
		Handler: func(p *write.Path) http.Handler { return New(Options{Sink: p, Rules: logs.DefaultRules()}) },
		Same:    sameResponse,
		Align: func(_, loki []logstest.Line) {
			for i := range loki {
				loki[i].Metadata = lastOfEach(loki[i].Metadata)
			}
		},
	}
	r.Run(t)
}

func sameResponse(ours *httptest.ResponseRecorder, loki *logstest.Response) bool {
	text := ours.Body.String()
	switch {
	case loki.Refused != "":
		return ours.Code/100 == 4 && (!strings.HasPrefix(loki.Refused, "couldn't parse labels") || strings.Contains(text, loki.Refused))
	case len(loki.Errors) == 0:
		return ours.Code == http.StatusNoContent
	case len(loki.Errors) == 1 && !sameText(strings.TrimSuffix(text, "\n"), loki.Errors[0]):
		return false
	}
	return ours.Code == http.StatusBadRequest
}

// lastOfEach keeps the last of equal names; Loki stores all of them.
func lastOfEach(pairs []string) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		if i+2 >= len(pairs) || pairs[i] != pairs[i+2] {
			out = append(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

// sameText reports whether a text is Loki's, apart from the stream, which Loki does not always name.
func sameText(ours, loki string) bool { return ours == loki || strings.HasSuffix(ours, ": "+loki) }

func allCases() (out []logstest.Case) {
	one := func(name, labels string, entries ...entry) {
		out = append(out, logstest.Case{Name: name, Path: Path, ContentType: "application/x-protobuf", Body: snappy.Encode(nil, protobufOf(pushed{labels, entries}))})
	}
	js := func(name, body string) {
		out = append(out, logstest.Case{Name: name, Path: Path, ContentType: "application/json", Body: []byte(strings.ReplaceAll(body, "%d", fmt.Sprint(now)))})
	}
	line := entry{at: now, line: "a line"}
	for i, l := range []string{
		`{a="b"}`, `{}`, ``, `{a=""}`, `{b="1", a="2"}`, ` { a = "b" , } `, `{a='b'}`, "{a=`b`}", `{a="\u00e9\n\""}`, `{"a.b"="c"}`, `up{a="b"}`,
		`{a="b"`, `a="b"`, `{a-b="c"}`, `{1a="b"}`, `{a="b", a="c"}`, `{a="b", a="b"}`, `{service="x", app="y"}`, `{app="y", job="z"}`, `{k8s_job_name="k"}`,
		`{service_name="s", app="y"}`, `{service_name="", app="y"}`, `{workload="w", component="c"}`, `{on="1", by="2", sum="3"}`, "{a=\"\xff\"}", "{a=\"b\nc\"}", `{a="b",,}`,
		`{a=~"b"}`, `{a="b"} x`, "{#comment\na=\"b\"}", `{a="` + strings.Repeat("v", 2048) + `"}`, `{` + strings.Repeat("n", 1024) + `="v"}`,
	} {
		one(fmt.Sprint("labels ", i), l, line)
	}
	var many []string
	for i := range 16 {
		many = append(many, fmt.Sprintf(`l%02d="v"`, i))
	}
	one("15 labels", "{"+strings.Join(many[:15], ",")+"}", line)
	one("16 labels", "{"+strings.Join(many, ",")+"}", line)
	week, minutes := int64(7*24*time.Hour), int64(10*time.Minute)
	one("a week old", `{a="b"}`, entry{at: now - week, line: "x"})
	one("too old", `{a="b"}`, entry{at: now - week - 1, line: "x"})
	one("ten minutes ahead", `{a="b"}`, entry{at: now + minutes, line: "x"})
	one("too new", `{a="b"}`, entry{at: now + minutes + 1, line: "x"})
	one("a long line", `{a="b"}`, entry{at: now, line: strings.Repeat("x", 256<<10)})
	one("too long a line", `{a="b"}`, entry{at: now, line: strings.Repeat("x", 256<<10+1)}, line)
	one("order of equal times", `{a="b"}`, entry{at: now, line: "2"}, entry{at: now, line: "1"}, entry{at: now - 5, line: "0"}, entry{at: now, line: "2"})
	one("odd lines", `{a="b"}`, entry{at: now, line: ""}, entry{at: now, line: "\x00\xff\n"}, entry{at: now, line: "é"})
	meta := func(name string, m ...string) {
		one("metadata: "+name, `{a="b"}`, entry{at: now, line: "level=wrn x", metadata: m})
	}
	meta("two", "b", "1", "a", "2")
	meta("dots", "http.method", "GET", "a..b", "x")
	meta("underscores", "a__b", "1", "_a", "2", "__r__", "3", "c_", "4")
	meta("digits", "1a", "1")
	meta("no name", "", "1")
	meta("only underscores", "__", "1")
	meta("invalid UTF-8", "a", "x\xffy\ufffd")
	meta("twice", "a", "1", "b", "2", "a", "3")
	meta("level", "level", "Error")
	meta("a level of its own", "level", "notice")
	meta("severity", "severity", "CRITICAL", "lvl", "dbg")
	meta("detected level", "detected_level", "WARNING")
	meta("a detected level of its own", "detected_level", "loud")
	for _, n := range []string{"0", "1", "5", "9", "13", "17", "21", "25", "x", "-1"} {
		meta("severity number "+n, "severity_number", n)
	}
	meta("severity text", "severity_number", "17", "severity_text", "Information")
	for _, name := range []string{"level", "severity", "lvl", "Level", "SEVERITY_TEXT", "detected_level", "severity_number"} {
		meta("an empty "+name, name, "")
		meta("an empty "+name+" and a severity_text", name, "", "severity_text", "fatal")
		meta("a level and an empty "+name, "level", "trc", name, "")
	}
	meta("an empty level and a number", "level", "", "severity_number", "17")
	meta("64 KiB", "a", strings.Repeat("x", 64<<10-1))
	meta("more than 64 KiB", "a", strings.Repeat("x", 64<<10))
	var lots []string
	for i := range 129 {
		lots = append(lots, fmt.Sprintf("n%03d", i), "v")
	}
	meta("128", lots[:256]...)
	meta("129", lots...)
	for _, l := range []string{`{level="WARN"}`, `{level="notice"}`, `{severity="err", lvl="info"}`, `{Level="x"}`, `{"log.level"="dbg"}`, `{lEvel="dbg"}`} {
		one("level of labels "+l, l, line)
	}
	js("JSON", `{"streams":[{"stream":{"b":"1","a":"2"},"values":[["%d","x\ty\u00e9\ud83d\ude00",{"k":"v\n"}],["%d","z"]]},{"stream":{"a":"2"},"values":[]}]}`)
	js("JSON: labels behind", `{"streams":[{"values":[["%d","x"]],"stream":{"a":"1"}}]}`)
	js("JSON: no labels", `{"streams":[{"values":[["%d","x"]]}]}`)
	js("JSON: a number for a label", `{"streams":[{"stream":{"a":1},"values":[["%d","x"]]}]}`)
	js("JSON: a label with a dash", `{"streams":[{"stream":{"a-b":"1"},"values":[["%d","x"]]}]}`)
	js("JSON: a label with quotes", `{"streams":[{"stream":{"a":"x\"y\\z\u0001"},"values":[["%d","x"]]}]}`)
	js("JSON: a time that is a number", `{"streams":[{"stream":{"a":"1"},"values":[[%d,"x"]]}]}`)
	js("JSON: null", `{"streams":[{"stream":{"a":"1"},"values":[null,["%d","x"]]}]}`)
	js("JSON: values null", `{"streams":[{"stream":{"a":"1"},"values":null}]}`)
	js("JSON: metadata that is a number", `{"streams":[{"stream":{"a":"1"},"values":[["%d","x",{"a":1}]]}]}`)
	js("JSON: more than three", `{"streams":[{"stream":{"a":"1"},"values":[["%d","x",{},"y"]]}]}`)
	js("JSON: upper case", `{"Streams":[{"stream":{"a":"1"},"values":[["%d","x"]]}]}`)
	js("JSON: cut off", `{"streams":[{"stream":{"a":"1"},"values":[["%d","x"`)
	js("JSON: half a surrogate", `{"streams":[{"stream":{"a":"1"},"values":[["%d","\ud800"]]}]}`)
	out = append(out, logstest.Case{Name: "legacy JSON", Path: LegacyPath, ContentType: "application/json", Body: legacyOf(pushed{`{a="b"}`, []entry{line, {at: now - 1, line: "y"}}})})
	out = append(out, logstest.Case{Name: "gzip of snappy", Path: Path, ContentType: "application/x-protobuf", ContentEncoding: "gzip", Body: gzipped(snappy.Encode(nil, protobufOf(pushed{`{a="b"}`, []entry{line}})))})
	out = append(out, logstest.Case{Name: "another type", Path: Path, ContentType: "text/plain", Body: snappy.Encode(nil, protobufOf(pushed{`{a="b"}`, []entry{line}}))})
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 4 {
		var entries []entry
		for j := range 400 {
			entries = append(entries, entry{at: now + int64(j), line: randomLine(rng)})
		}
		one(fmt.Sprint("random lines ", i), `{a="b"}`, entries...)
	}
	return out
}

// randomLine makes a line of pieces that name a level, or damage the name of one.
func randomLine(r *rand.Rand) string {
	words := []string{"level", "LEVEL", "Level", "lvl", "severity", "Severity_Text", "log.level", "info", "INFO", "wrn", "error", "Err", "trc", "fatal", "critical", "warning", "terror", "misc:error", "x", "é", "\xff"}
	word := func() string { return words[r.IntN(len(words))] }
	switch r.IntN(4) {
	case 0: // text
		s := ""
		for range r.IntN(6) {
			s += word() + []string{" ", ": ", "=", "[", "] ", "(", ")", "\"", "'", "|", ", ", "!", "\t"}[r.IntN(13)]
		}
		return s
	case 1: // logfmt
		s := ""
		for range 1 + r.IntN(5) {
			v := word()
			switch r.IntN(5) {
			case 0:
				v = `"` + v + ` ` + word() + `"`
			case 1:
				v = `"` + []string{`\n`, `\x`, `\u00e9`, `\"`, `\`}[r.IntN(5)] + v + `"`
			}
			s += word() + "=" + v + []string{" ", "  ", "", "= "}[r.IntN(4)]
		}
		return s
	case 2: // JSON
		return randomJSON(r, word, 0) + []string{"", " ", "}", "\n"}[r.IntN(4)]
	}
	b := []byte(randomJSON(r, word, 0)) // damaged
	if len(b) > 0 {
		b[r.IntN(len(b))] = "\"{}[]:,\\ x"[r.IntN(10)]
	}
	return string(b)
}

func randomJSON(r *rand.Rand, word func() string, depth int) string {
	var members []string
	for range r.IntN(4) {
		v := `"` + word() + `"`
		switch k := r.IntN(8); {
		case k == 0:
			v = []string{"1", "-2.5e3", "true", "null", "nope"}[r.IntN(5)]
		case k == 1:
			v = `[` + v + `,{"level":"info"}]`
		case k == 2 && depth < 3:
			v = randomJSON(r, word, depth+1)
		case k == 3:
			v = `"\"` + word() + `\\"`
		}
		name := word()
		if r.IntN(10) == 0 {
			name = `l\u0065vel`
		}
		members = append(members, `"`+name+`":`+v)
	}
	return "{" + strings.Join(members, []string{",", ", "}[r.IntN(2)]) + "}"
}

func gzipped(b []byte) []byte {
	return compress(nil, "gzip", b)
}
