//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/client"
)

type victoriaStream struct {
	labels map[string]string
	lines  []victoriaLine
}

type victoriaLine struct {
	name     string
	at       int // seconds after the base time
	text     string
	metadata map[string]string
}

// victoriaModule is the module that pins VictoriaLogs and builds it.
const victoriaModule = "../victorialogs"

// victoria is a VictoriaLogs, and a Shale before it.
type victoria struct {
	t             *testing.T
	dir           string
	program, addr string
	base          time.Time
	backend       *process
	shale         *server
}

func newVictoria(t *testing.T) *victoria {
	v := newVictoriaAlone(t)
	v.startShale("http://"+v.addr, "anonymous=0,a=1:2,b=1,c=0", "--victorialogs.extra-filters", `c={env="dev"}`)
	return v
}

// newVictoriaAlone starts VictoriaLogs without Shale.
func newVictoriaAlone(t *testing.T) *victoria {
	cmd := exec.Command("go", "tool", "-n", "victoria-logs")
	cmd.Dir = victoriaModule
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("building VictoriaLogs: %v", err)
	}
	dir := t.TempDir()
	v := &victoria{t: t, dir: dir, program: strings.TrimSpace(string(out)), addr: freeAddr(t), base: time.Now().Add(-time.Hour).Truncate(10 * time.Minute)}
	writeFile(t, v.authorization(), "Basic "+"dTpw\n")
	v.startBackend()
	return v
}

// authorization returns the file with the credentials.
func (v *victoria) authorization() string { return filepath.Join(v.dir, "authorization") }

// startShale starts a Shale that reads VictoriaLogs at a URL.
func (v *victoria) startShale(url, accounts string, args ...string) {
	v.shale = newServer(v.t, v.t.TempDir())
	v.shale.args = append(v.shale.args, "--retention", "0", "--source", "victorialogs="+url, "--victorialogs.check-every", "1s",
		"--victorialogs.accounts", accounts, "--victorialogs.authorization-file", v.authorization())
	v.shale.args = append(v.shale.args, args...)
	v.shale.start()
}

func (v *victoria) startBackend() {
	v.backend = start(v.t, v.dir, "victoria-logs", v.program, "-storageDataPath", filepath.Join(v.dir, "data"), "-httpListenAddr", v.addr,
		"-retentionPeriod", "100y", "-delete.enable", "-memory.allowedBytes", "256MiB", "-httpAuth.username", "u", "-httpAuth.password", "p")
	v.backend.waitFor(v.t, "http://"+v.addr+"/health")
}

// send asks VictoriaLogs itself.
func (v *victoria) send(account, path, kind string, body []byte) string {
	v.t.Helper()
	req, err := http.NewRequest("POST", "http://"+v.addr+path, bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	id, project, _ := strings.Cut(account, ":")
	req.Header.Set("AccountID", id)
	req.Header.Set("ProjectID", project)
	req.Header.Set("Content-Type", kind)
	req.SetBasicAuth("u", "p")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		v.t.Fatalf("%s: %d, %v: %s", path, resp.StatusCode, err, text)
	}
	return string(text)
}

func (v *victoria) push(account string, streams []victoriaStream) {
	v.t.Helper()
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	var all []stream
	for _, s := range streams {
		x := stream{Stream: s.labels}
		for _, l := range s.lines {
			value := []any{v.stamp(l.at), l.text}
			if l.metadata != nil {
				value = append(value, l.metadata)
			}
			x.Values = append(x.Values, value)
		}
		all = append(all, x)
	}
	body, err := json.Marshal(map[string]any{"streams": all})
	if err != nil {
		v.t.Fatal(err)
	}
	v.send(account, "/insert/loki/api/v1/push?disable_message_parsing=1", "application/json", body)
}

// stamp returns the time so many seconds after the base time.
func (v *victoria) stamp(seconds int) string {
	return strconv.FormatInt(v.base.Add(time.Duration(seconds)*time.Second).UnixNano(), 10)
}

// ask asks Shale's Loki API.
func (v *victoria) ask(tenant, path string, form url.Values) (body []byte, status int) {
	v.t.Helper()
	req, err := http.NewRequest("GET", v.shale.url()+"/loki/api/v1/"+path+"?"+form.Encode(), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	if tenant != "" {
		req.Header.Set("X-Scope-OrgID", tenant)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		v.t.Fatal(err)
	}
	return body, resp.StatusCode
}

// number is a value as JSON has it: a time and a text.
type number [2]any

func (n number) String() string { return fmt.Sprint(n[1]) }

// at returns the time in seconds.
func (n number) at() int64 { return int64(n[0].(float64)) }

type victoriaResult struct {
	Data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  number            `json:"value"`
			Values []number          `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// read asks and decodes, and returns a text for an error.
func (v *victoria) read(tenant, path string, form url.Values) (r victoriaResult, failed string) {
	v.t.Helper()
	body, status := v.ask(tenant, path, form)
	if status != http.StatusOK {
		return r, fmt.Sprintf("status %d: %s", status, body)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		v.t.Fatalf("%v: %s", err, body)
	}
	return r, ""
}

// lines returns the names of the lines that a query selects, the oldest first.
func (v *victoria) lines(tenant, query string) string {
	v.t.Helper()
	r, failed := v.read(tenant, "query_range", url.Values{"query": {query}, "start": {v.stamp(-300)}, "end": {v.stamp(600)}, "direction": {"forward"}})
	if failed != "" {
		return failed
	}
	names := map[string]string{}
	for _, s := range victoriaStreams {
		for _, l := range s.lines {
			names[v.stamp(l.at)+l.text] = l.name
		}
	}
	var all [][2]string
	for _, s := range r.Data.Result {
		for _, x := range s.Values {
			at, text := x[0].(string), x[1].(string)
			name, ok := names[at+text]
			if !ok {
				name = strconv.Quote(text)
			}
			all = append(all, [2]string{at, name})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int {
		if a[0] == b[0] { // A0 and D0, in streams of their own
			return -strings.Compare(a[1], b[1])
		}
		return strings.Compare(a[0], b[0])
	})
	var out []string
	for _, x := range all {
		out = append(out, x[1])
	}
	return strings.Join(out, " ")
}

// instant returns the result of a metric query at an instant.
func (v *victoria) instant(tenant, query string, at int) string {
	v.t.Helper()
	r, failed := v.read(tenant, "query", url.Values{"query": {query}, "time": {v.stamp(at)}})
	if failed != "" {
		return failed
	}
	var out []string
	for _, s := range r.Data.Result {
		out = append(out, labelText(s.Metric)+" "+s.Value.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// steps returns the result of a metric query over a range. A step without a value is a dot.
func (v *victoria) steps(tenant, query string, from, to int) string {
	v.t.Helper()
	r, failed := v.read(tenant, "query_range", url.Values{"query": {query}, "start": {v.stamp(from)}, "end": {v.stamp(to)}, "step": {"60"}})
	if failed != "" {
		return failed
	}
	var out []string
	for _, s := range r.Data.Result {
		at := map[int64]string{}
		for _, x := range s.Values {
			at[x.at()] = x.String()
		}
		text := labelText(s.Metric)
		for t := from; t <= to; t += 60 {
			value, ok := at[v.base.Unix()+int64(t)]
			if !ok {
				value = "."
			}
			text += " " + value
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// becomes waits until a query has a result.
func (v *victoria) becomes(what, want string, get func() string) {
	v.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = get(); got == want {
			return
		}
	}
	v.t.Fatalf("%s: %s, want %s", what, got, want)
}

// TestVictoriaLogs lets Shale answer over a real VictoriaLogs. The expected results are Loki's, by hand:
// they have what other translations to LogsQL get wrong.
func TestVictoriaLogs(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about logs")
	}
	t.Parallel()
	v := newVictoria(t)
	v.push("0", victoriaStreams)
	v.becomes("the lines", "D0 A0 M0 A1 M1 A2 M2 A3 M3 A4 D1 D2", func() string { return v.lines("", `{env=~".+"}`) })
	for query, want := range victoriaLines {
		if got := v.lines("", query); got != want {
			t.Errorf("%s\nhas  %s\nwant %s", query, got, want)
		}
	}
	for _, c := range victoriaNumbers {
		if got := v.instant("", c.query, c.at); got != c.want {
			t.Errorf("%s at %d\nhas  %s\nwant %s", c.query, c.at, got, c.want)
		}
	}
	for _, c := range victoriaSteps {
		if got := v.steps("", c.query, c.from, c.to); got != c.want {
			t.Errorf("%s from %d to %d\nhas  %s\nwant %s", c.query, c.from, c.to, got, c.want)
		}
	}
	v.lists()
	v.tenants()
	shown := v.follows()
	v.keeps()
	v.push("0", []victoriaStream{{map[string]string{"app": "live", "env": "prod"}, v.now("third")}})
	v.becomes("the tail after the restart", "first second third", shown)
}

// now returns a line with the time of now.
func (v *victoria) now(text string) []victoriaLine {
	return []victoriaLine{{"", int(time.Since(v.base).Seconds()), text, nil}}
}

// follows follows lines until the test ends, and returns what gives their texts.
func (v *victoria) follows() (shown func() string) {
	t := v.t
	var mu sync.Mutex
	var all []string
	tail := client.Tail{
		Server: api(v.shale.url()), Expr: `{app="live"} |~ "first|second|third"`, Start: time.Now(), Limit: 10,
		Show: func(lines []client.Line) error {
			mu.Lock()
			defer mu.Unlock()
			for _, l := range lines {
				all = append(all, string(l.Text))
			}
			return nil
		},
		Note: t.Logf,
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := tail.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("tail: %v", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	shown = func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(all, " ")
	}
	v.push("0", []victoriaStream{{map[string]string{"app": "live", "env": "prod"}, v.now("first")}})
	v.becomes("the tail", "first", shown)
	late := v.now("second")
	late[0].at -= 3
	v.push("0", []victoriaStream{{map[string]string{"app": "live", "env": "prod"}, late}, {map[string]string{"app": "live", "env": "dev"}, v.now("another")}})
	v.becomes("a late line in the tail", "first second", shown)
	return shown
}

// lists asks for labels, series and volumes.
func (v *victoria) lists() {
	span := url.Values{"start": {v.stamp(-300)}, "end": {v.stamp(600)}}
	for _, c := range []struct {
		path, name string
		more       url.Values
		want       string
	}{
		{"labels", "data", nil, `["app","env","service_name"]`},
		{"label/service_name/values", "data", nil, `["api","database","my-api-2"]`},
		{"series", "data", url.Values{"match[]": {`{app="db"}`, `{app="none"}`}}, `[{"app":"db","env":"dev","service_name":"database"}]`},
		{"index/volume", "data", url.Values{"query": {`{app="db"}`}, "targetLabels": {"app"}}, `43`},
		{"index/stats", "bytes", url.Values{"query": {`{app="db"}`}}, `43`},
		{"index/stats", "entries", url.Values{"query": {`{app="db"}`}}, `3`},
		{"index/stats", "streams", url.Values{"query": {`{env="prod"}`}}, `2`},
	} {
		form := url.Values{}
		for _, all := range []url.Values{span, c.more} {
			for name, values := range all {
				form[name] = values
			}
		}
		body, status := v.ask("", c.path, form)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil || status != http.StatusOK {
			v.t.Errorf("%s: %d %s", c.path, status, body)
			continue
		}
		got := string(object[c.name])
		if c.path == "index/volume" {
			got = onlyValue(got)
		}
		if got != c.want {
			v.t.Errorf("%s has %s, want %s", c.path, got, c.want)
		}
	}
	for query, want := range map[string]int{`{app="api"`: 400, `{app=~"("}`: 400, `sum(rate({app="api"}))`: 400, `{app="api"} | json | unwrap took`: 400, `{app!="x"}`: 400} {
		if body, status := v.ask("", "query_range", url.Values{"query": {query}}); status != want {
			v.t.Errorf("%s: %d %s, want %d", query, status, body, want)
		}
	}
}

// onlyValue returns the number in the only series of a vector.
func onlyValue(data string) string {
	_, value, _ := strings.Cut(data, `"value":[`)
	_, value, _ = strings.Cut(value, `,"`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}

// tenants: each tenant sees the lines of its account that pass its filter, warm or not.
func (v *victoria) tenants() {
	other := []victoriaStream{{map[string]string{"app": "api"}, []victoriaLine{{"O0", 1, "of another account", nil}}}}
	v.push("1:2", other)
	v.becomes("the lines of another account", `"of another account"`, func() string { return v.lines("a", `{app=~".+"}`) })
	for range 3 {
		for tenant, want := range map[string]string{"": "A0 A1 A2 A3 A4", "a": `"of another account"`, "b": "", "c": "", "d": "", "1": ""} {
			if got := v.lines(tenant, `{app="api"}`); got != want {
				v.t.Errorf("tenant %q sees %s, want %s", tenant, got, want)
			}
		}
		if got := v.lines("c", `{env=~".+"}`); got != "D0 D1 D2" {
			v.t.Errorf("tenant c sees %s", got)
		}
	}
}

// keeps: answers are kept, and late lines, deletions and restarts are seen. The file with the credentials is
// read again, and without it queries fail.
func (v *victoria) keeps() {
	t := v.t
	query := `sum by (app) (count_over_time({env=~".+"}[5m]))`
	get := func() string { return v.steps("", query, 0, 60) }
	const before, after = `{app="api"} 1 5 {app="db"} 1 2 {app="my-api-2"} . 4`, `{app="api"} 1 5 {app="db"} 1 2 {app="late"} . 1 {app="my-api-2"} . 4`
	hits := func() string {
		if got := get(); got != before {
			return got
		}
		if v.metric("shale_answers_hits_total") > 0 {
			return "a hit"
		}
		return "no hit"
	}
	v.becomes("a kept answer", "a hit", hits)
	v.push("0", []victoriaStream{{map[string]string{"app": "late", "env": "prod"}, []victoriaLine{{"L0", 31, "late", nil}}}})
	v.becomes("a late line", after, get)
	v.send("0", "/delete/run_task", "application/x-www-form-urlencoded", []byte(url.Values{"filter": {`{app="late"}`}}.Encode()))
	v.becomes("a deletion", before, get)

	v.backend.stop(t)
	v.becomes("an error while VictoriaLogs is down", "an error", func() string {
		if got := get(); !strings.HasPrefix(got, "status 5") || !strings.Contains(got, "VictoriaLogs") {
			return got
		}
		return "an error"
	})
	v.startBackend()
	v.becomes("VictoriaLogs after a restart", before, get)
	v.becomes("a query after the breaker closed", "A1", func() string { return v.lines("", `{app="api"} |= "500"`) })
	v.push("0", []victoriaStream{{map[string]string{"app": "late", "env": "prod"}, []victoriaLine{{"L1", 32, "later", nil}}}})
	v.becomes("a late line after a restart", after, get)

	file := v.authorization()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := v.lines("", `{app="db"} |= "n=7"`); !strings.HasPrefix(got, "status 5") || !strings.Contains(got, "authorization-file") {
		t.Errorf("without credentials: %s", got)
	}
	writeFile(t, file, "Basic wrong")
	if got := v.lines("", `{app="db"} |= "n=7"`); !strings.HasPrefix(got, "status 5") || !strings.Contains(got, "401") {
		t.Errorf("with the wrong credentials: %s", got)
	}
	writeFile(t, file, "Basic dTpw")
	if got := v.lines("", `{app="db"} |= "n=7"`); got != "D1" {
		t.Errorf("with new credentials: %s", got)
	}
	if n := v.metric("shale_victorialogs_breaker_open"); n != 0 {
		t.Error("the breaker is open")
	}
}

// metric returns the value of a metric of Shale.
func (v *victoria) metric(name string) float64 {
	v.t.Helper()
	resp, err := http.Get(v.shale.url() + "/metrics")
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				v.t.Fatal(err)
			}
			return n
		}
	}
	v.t.Fatalf("no metric %s", name)
	return 0
}
