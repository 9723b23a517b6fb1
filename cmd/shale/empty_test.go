package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/logtest"
)

// TestEmptyResults: a result without rows says what was asked, and what there is instead.
func TestEmptyResults(t *testing.T) {
	url := startServer(t)
	now := time.Now()
	old := now.Add(-150 * time.Minute).Truncate(time.Second)
	fill(t, url, "", old, 4, "checkout", "audit")
	fill(t, url, "", now, 4, "web")
	measure(t, url, "", now, "temperature", "room", "kitchen", "floor", "1")
	measure(t, url, "", old, "humidity", "room", "attic")
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{`--logs {app="checkot"}`, []string{`no lines of {app="checkot"} from `, "(1h), of the default tenant", `the label app has no value "checkot"; did you mean "checkout"? 3 values: "audit", "checkout", "web"`}},
		{`--logs {ap="web"} --tenant x`, []string{`of the tenant "x"`, "the tenant has no logs at all"}},
		{`--logs {apps="web"}`, []string{"no stream has the label apps; did you mean app? 4 labels: app, env, host, service_name"}},
		{`--logs {apps="web"} -o raw`, []string{"no stream has the label apps"}},
		{`--logs {apps="web"} -o json`, []string{"no stream has the label apps"}},
		{`--logs {app="web",host=~"x.+"}`, []string{`no value of the label host of {app="web"} satisfies host=~"x.+"; 2 values: "h0", "h1"`}},
		{`--logs {app="web",host!~"h.*"}`, []string{`every stream of {app="web"} has the label host, with 2 values: "h0", "h1"; none satisfies host!~"h.*"`}},
		{`--logs {app="checkout"}`, []string{`the newest line of {app="checkout"} before that is from ` + localTime(old) + ": try --since 3h"}},
		{`--logs {app="checkout"} --start -10h --end -9h`, []string{`the first line of {app="checkout"} after that is from ` + localTime(old.Add(-3*time.Second)) + ": try --end " + localTime(old.Add(-2*time.Second))}},
		{`--logs {app="checkout"} --start -1h --end now`, []string{": try --start " + localTime(old)}},
		{`--logs {app="web"}|="nothing"`, []string{`the selector {app="web"} has 4 lines there; what follows the selector leaves none`}},
		{`--logs rate({app="wep"}[5m])`, []string{`no series of rate({app="wep"}[5m]) at `, `the label app has no value "wep"; did you mean "web"?`}},
		{`--logs rate({app="web"}|="nothing"[5m])`, []string{`the selector {app="web"} has 4 lines there; what the query does with that leaves no number`}},
		{`--logs sum(rate({app="checkout"}[5m]))`, []string{`the newest line of {app="checkout"} before that is from ` + localTime(old) + ": try --time " + localTime(old)}},
		{`--logs rate({app="checkout"}[5m]) -o plot`, []string{"(1h)", "try --since 3h"}},
		{`--logs vector(1)>2`, []string{"no series of vector(1)>2 at "}},
		{`temprature`, []string{"no series of temprature at ", ", of the default tenant", `no metric is called "temprature"; did you mean temperature? 2 metrics: humidity, temperature`}},
		{`temperature{room="kitchn"} -o csv`, []string{`the label room of temperature has no value "kitchn"; did you mean "kitchen"? 1 value: "kitchen"`}},
		{`{rom="x"}`, []string{"no series has the label rom; "}},
		{`humidity`, []string{"a series of humidity has its newest sample before that at " + localTime(old) + ": try --time " + localTime(old)}},
		{`humidity --since 1h`, []string{"(1h)", ": try --since 3h"}},
		{`humidity[5m]`, []string{": try --time"}},
		{`sum(temperature)+humidity`, []string{"a series of humidity has"}},
		{`temperature>5`, []string{"the selector temperature has samples there; what the query does with them leaves none"}},
		{`temperature-on(room)humidity`, []string{"a series of humidity"}},
		{`{__name__=~".+"}>5`, []string{`the selector {__name__=~".+"} has samples there`}},
		{`temperature --time -2h`, []string{"series of temperature exist, but no sample of them is from before"}},
		{`up --tenant x`, []string{"the tenant has no metrics at all"}},
		{`vector(1)==2`, []string{"no series of vector(1)==2 at "}},
	} {
		code, out, errs := shale(t, nil, append([]string{"query", "--url", url}, strings.Fields(c.args)...)...)
		if code != exitOK || strings.Contains(out, "note") {
			t.Errorf("%s: exit %d: %s", c.args, code, out)
		}
		for _, want := range c.wants {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: lacks %q:\n%s", c.args, want, errs)
			}
		}
	}
	for _, args := range []string{`--logs {app="web"}`, `--logs rate({app="web"}[5m])`, `--logs sum(rate({app="web"}[5m])) -o plot`, `--logs 1+1`, "temperature", "1+1", `"x"`, "temperature -o json"} {
		if code, out, errs := shale(t, nil, append([]string{"query", "--url", url}, strings.Fields(args)...)...); code != exitOK || out == "" || errs != "" {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
	t.Run("tail", func(t *testing.T) { silentTail(t, url) })
}

// silentTail follows a stream that does not exist until that is said.
func silentTail(t *testing.T, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out, errs logtest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tail", `{app="wep"} |= "x"`, "--url", url}, &process{stdout: &out, stderr: &errs})
	}()
	for !strings.Contains(errs.String(), "did you mean") && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if code := <-done; code != exitOK || !strings.Contains(errs.String(), `no line so far, and none of {app="wep"} from`) || !strings.Contains(errs.String(), `did you mean "web"?`) {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

// TestEmptyOfAnother: if a server does not say more, the query still succeeds.
func TestEmptyOfAnother(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/query" && !strings.HasPrefix(r.FormValue("query"), "count(") {
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[ ]}}`))
			return
		}
		http.Error(w, "no", http.StatusBadRequest)
	}))
	defer s.Close()
	for _, expr := range []string{"up", "this is not PromQL"} {
		if code, _, errs := shale(t, nil, "query", "--url", s.URL, expr); code != exitOK || !strings.HasPrefix(errs, "shale: note: no series of "+expr+" at ") || strings.Count(errs, "\n") != 1 {
			t.Errorf("exit %d: %q", code, errs)
		}
	}
}

// TestCutResults: an output that --limit has ended says so, and where it goes on; a whole one does not.
func TestCutResults(t *testing.T) {
	url := startServer(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	fill(t, url, "", at, 5, "web")
	second := func(n int) string { return localTime(at.Add(time.Duration(n-4) * time.Second)) }
	for args, want := range map[string]string{
		"--limit 2":                           "--limit 2 is reached: there may be older lines, from " + second(0) + " to " + second(3) + "; --limit 0 shows all",
		"--limit 2 -o raw":                    "there may be older lines",
		"--limit 2 -o json":                   "older lines, from " + second(0) + " to " + second(3),
		"--limit 2 --forward":                 "there may be newer lines, from " + second(1) + " to " + second(9),
		"--limit 6":                           "",
		"--limit 0":                           "",
		"--limit 6 --stats":                   "summary.totalEntriesReturned: 5\n",
		"--stats -o raw":                      "summary.totalEntriesReturned: 5\n",
		"--stats -o jsonl":                    "summary.totalPostFilterLines: 5\n",
		"--limit 2 -o json --stats --forward": "newer lines, from " + second(1),
	} {
		flags := append([]string{"query", "--logs", `{app="web"}`, "--url", url, "--start", second(0), "--end", second(9)}, strings.Fields(args)...)
		code, out, errs := shale(t, nil, flags...)
		if code != exitOK || !strings.Contains(errs, want) || want == "" && errs != "" || strings.Contains(out, "--limit") {
			t.Errorf("%s: exit %d: %s%s\nwant %s", args, code, out, errs, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out, errs logtest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tail", `{app="web"}`, "--url", url, "--since", "1h", "--limit", "2"}, &process{stdout: &out, stderr: &errs})
	}()
	for !strings.Contains(errs.String(), "\n") && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if code := <-done; code != exitOK || !strings.Contains(errs.String(), "--limit 2 is reached: there may be older lines, from ") || !bytes.Contains([]byte(out.String()), []byte("line 4 of web")) {
		t.Errorf("exit %d, %s%s", code, out.String(), errs.String())
	}
}
