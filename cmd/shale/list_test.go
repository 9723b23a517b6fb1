package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLists runs labels, series and volume for both signals against a server.
func TestLists(t *testing.T) {
	url := startServer(t)
	now := time.Now()
	fill(t, url, "", now, 4, "web", "checkout")
	fill(t, url, "", now, 10, "audit")
	for i := range 3 {
		measure(t, url, "", now.Add(-time.Duration(i)*time.Minute), "temperature", "room", "kitchen", "floor", "1")
		measure(t, url, "", now, "temperature", "room", fmt.Sprint("attic", i), "floor", "2")
	}
	measure(t, url, "", now, "humidity", "room", "kitchen")
	measure(t, url, "", now, "door_open", "room", "kitchen\x1b[2J")
	const volumeOfLogs = "app       STREAMS  LINES  BYTES    SHARE\naudit           2     10    150   54.7 %\ncheckout        2      4     72   26.3 %\nweb             2      4     52   19.0 %\ntotal           6     18    274  100.0 %\n"
	for _, c := range []struct{ args, out, errs string }{
		{"labels", "LABEL\n__name__\nfloor\nroom\n", ""},
		{"labels -o raw --limit 2", "__name__\nfloor\n", "--limit 2 is reached: there are more labels; --limit 0 shows all"},
		{"labels -o json", `["__name__","floor","room"]` + "\n", ""},
		{"labels room", "VALUE\nattic0\nattic1\nattic2\nkitchen\nkitchen\\x1b[2J\n", ""},
		{"labels room -o json --match humidity", `["kitchen"]` + "\n", ""},
		{"labels rom", "", "no series has the label rom; did you mean room? 3 labels: __name__, floor, room"},
		{"labels rom -o json", "[]\n", "did you mean room?"},
		{"labels --tenant x", "", "the tenant has no metrics at all"},
		{"labels --logs", "LABEL\napp\nenv\nhost\nservice_name\n", ""},
		{"labels --logs app --limit 2", "VALUE\naudit\ncheckout\n", "there are more values"},
		{"labels --logs app --limit 1", "VALUE\naudit\n", "there are 3 values"},
		{`labels --logs app --match {app!="web",env="prod"} --limit 2`, "VALUE\naudit\ncheckout\n", ""},
		{`labels --logs --match {app="wep"}`, "", `did you mean "web"?`},
		{"labels --logs --start 2020-01-01 --end 2020-01-02", "", "there are streams at other times: try a longer --since"},
		{"labels --logs --tenant x", "", "the tenant has no logs at all"},
		{"series temperature", "temperature{floor=\"1\", room=\"kitchen\"}\ntemperature{floor=\"2\", room=\"attic0\"}\ntemperature{floor=\"2\", room=\"attic1\"}\ntemperature{floor=\"2\", room=\"attic2\"}\n", ""},
		{`series temperature{floor="2"} --limit 2`, "common labels: {floor=\"2\"}\ntemperature{room=\"attic0\"}\ntemperature{room=\"attic1\"}\n", "there are more series"},
		{`series {room=~"kitchen.+"}`, "door_open{room=\"kitchen\\x1b[2J\"}\n", ""},
		{`series {room=~"kitchen.+"} -o json`, `[{"__name__":"door_open","room":"kitchen\u001b[2J"}]` + "\n", ""},
		{"series temprature -o raw", "", "did you mean temperature?"},
		{`series --logs {app="web"}`, "common labels: {app=\"web\", env=\"prod\", service_name=\"web\"}\n{host=\"h0\"}\n{host=\"h1\"}\n", ""},
		{`series --logs {app="web",host="h1"} -o raw`, `{app="web", env="prod", host="h1", service_name="web"}` + "\n", ""},
		{`series --logs {app="web",host="h2"}`, "", `the label host of {app="web"} has no value "h2"`},
		{"volume", "__name__     SERIES  SAMPLES    SHARE\ntemperature       4        6   75.0 %\ndoor_open         1        1   12.5 %\nhumidity          1        1   12.5 %\ntotal             6        8  100.0 %\n", ""},
		{"volume --by floor", "floor  SERIES  SAMPLES    SHARE\n1           1        3   50.0 %\n2           3        3   50.0 %\ntotal       4        6  100.0 %\n", ""},
		{`volume {room=~".+"} --by floor --sort series -o raw`, "2\t3\t3\n\t2\t2\n1\t1\t3\n", ""},
		{`volume {__name__=~"t.*|h.*"} --by room -o json --limit 1`, `[{"label":"room","value":"kitchen","series":2,"samples":4}]` + "\n", "there are 4 values of room"},
		{`volume temperature --by room --sort name --limit 1 -o raw`, "attic0\t1\t1\n", "there are 4 values"},
		{"volume nothing", "", "no metric is called \"nothing\""},
		{"volume --logs --by app", volumeOfLogs, ""},
		{`volume --logs --by host {app="web"} -o raw`, "h0\t1\t2\t26\nh1\t1\t2\t26\n", ""},
		{"volume --logs --by hst", "", "no stream has the label hst; did you mean host?"},
		{"volume --logs -o json --limit 1", `[{"label":"service_name","value":"audit","streams":2,"lines":10,"bytes":150}]` + "\n", "there are 3 values of service_name"},
	} {
		code, out, errs := shale(t, nil, append(strings.Fields(c.args), "--url", url)...)
		if code != exitOK || out != c.out || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
			t.Errorf("shale %s: exit %d\n%s%s\nwant\n%s%s", c.args, code, out, errs, c.out, c.errs)
		}
	}
}

// TestCardinality runs cardinality for both signals against a server.
func TestCardinality(t *testing.T) {
	url := startServer(t)
	now := time.Now()
	fill(t, url, "", now, 4, "web", "checkout")
	for i := range 3 {
		measure(t, url, "", now, "temperature", "room", fmt.Sprint("attic", i), "floor", "2")
	}
	measure(t, url, "", now, "door_open", "room", "kitchen\x1b[2J")
	today := now.UTC().Format(time.DateOnly)
	for _, c := range []struct{ args, out, last string }{
		{"", "METRIC       SERIES   SHARE\ntemperature       3  75.0 %\ndoor_open         1  25.0 %\n", "4 series; 2 of 2 metrics"},
		{"--json --limit 1", `{"series":4,"distinct":2,"undercount":0,"distinctError":0,"list":[{"name":"temperature","series":3}]}` + "\n", ""},
		{"labels", "LABEL     VALUES  SERIES  BYTES\nroom           4       4     29\n__name__       2       4     42\nfloor          1       3      3\n", "4 series; 3 of 3 labels"},
		{"values --label room --match door_open", "VALUE           SERIES    SHARE\nkitchen\\x1b[2J       1  100.0 %\n", "1 series; 1 of 1 value"},
		{"values --logs --limit 1", "VALUE     SERIES    SHARE\nenv=prod       4  100.0 %\n", "4 series; 1 of 7 values"},
		{"--day " + today + " --against 2020-01-01", "METRIC       NOW  BEFORE  CHANGE\ntemperature    3       0      +3\ndoor_open      1       0      +1\n", "4 series, 0 before; 2 of 2 metrics"},
		{"--tenant x", "", "0 series; 0 of 0 metrics"},
	} {
		code, out, errs := shale(t, nil, append(append([]string{"cardinality"}, strings.Fields(c.args)...), "--url", url)...)
		if c.last != "" {
			c.out += c.last + "\n"
		}
		if code != exitOK || out != c.out || errs != "" {
			t.Errorf("shale cardinality %s: exit %d\n%s%s\nwant\n%s", c.args, code, out, errs, c.out)
		}
	}
	if code, out, errs := shale(t, nil, "cardinality", "active", "--url", url); code != exitOK || !strings.Contains(out, "8 active series\n4 created in the last ") ||
		!strings.Contains(out, "4 created on "+today) || !strings.Contains(out, "  temperature       3  75.0 %\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"metrics --logs":       "streams of logs have no metrics",
		"labels --label x":     "only cardinality/values has it",
		"--against 2020-01-01": "expected a day to compare with",
		"--day now":            `expected a day such as 2026-11-26, got "now"`,
		"--limit 0":            "expected a number from 1 to 10000",
		"--match {":            "parse error",
		"active --days 91":     "expected a number from 1 to 90",
	} {
		if code, out, errs := shale(t, nil, append(append([]string{"cardinality"}, strings.Fields(args)...), "--url", url)...); code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
}

// TestListsOfAnother: what a server refuses is an error, and what no server would be asked for is wrong use.
func TestListsOfAnother(t *testing.T) {
	many := make([]string, maxGroups+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	values, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/label/__name__/values", "/loki/api/v1/label/pod/values":
			fmt.Fprintf(w, `{"status":"success","data":%s}`, values)
		case "/loki/api/v1/labels":
			fmt.Fprint(w, `{"status":"success","data":[1]}`)
		default:
			http.Error(w, "not here", http.StatusNotFound)
		}
	}))
	defer s.Close()
	for args, want := range map[string]string{
		"labels":                   "HTTP 404: not here",
		"labels --logs":            "the response is not of the Loki API",
		"series up":                "HTTP 404: not here",
		"volume":                   "there are more than 10000 metrics, and volume asks for each: narrow the selector",
		"volume --logs --by pod":   "there are more than 10000 values of pod",
		"volume --logs --by space": "HTTP 404: not here",
	} {
		if code, out, errs := shale(t, nil, append(strings.Fields(args), "--url", s.URL)...); code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
	for args, want := range map[string]string{
		"series": "<selector>", "volume {": "the selector: 1:2: parse error", "volume --logs {": "the selector: parse error", "labels --limit -1": "--limit: want a number of rows",
		"labels --start soon": "--start:", "series up --url x": "--url", "volume --sort size --logs {}": "at least one", "labels -o csv": "--format must be one of",
	} {
		if code, out, errs := shale(t, nil, strings.Fields(args)...); code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
}
