package victorialogs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
	"github.com/shaledb/shale/internal/write/logs"
)

// serviceSource returns a source that makes service_name of some labels.
func serviceSource(t *testing.T, server, account string, order []string) *victorialogs.Source {
	s := victorialogs.New(victorialogs.Options{
		Settings: victorialogstest.Settings(t, server, account), Seed: 1, Rules: logs.Rules{ServiceNames: order}, Registerer: prometheus.NewRegistry(),
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var serviceLabels = []string{"service_name", "app_name", "app_kubernetes_io_name", "job", "k8s_job_name", "container_name", "service", "some_label"}

// serviceData returns streams whose fields have random names for labels, the same with labels as they are
// shown, and the labels that service_name is made of.
func serviceData(r *rand.Rand) (stored, shown *logqltest.Dataset, order []string) {
	values := []string{"a", "b", "ab", "a.b", `a"b`, "a b", "é", "unknown_service", "=", "=a", `a\`}
	stored, shown = new(logqltest.Dataset), new(logqltest.Dataset)
	order = append(slices.Clone(serviceLabels[1:]), "app")
	r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	order = order[:1+r.IntN(len(order)-1)]
	seen := map[string]bool{}
	for i := range 3 + r.IntN(20) {
		fields, labels, of := []string{"app", values[r.IntN(len(values))]}, []string{}, map[string]string{}
		labels = append(labels, fields...)
		of["app"] = fields[1]
		for _, label := range serviceLabels {
			if r.IntN(5) > 0 {
				continue
			}
			field, value := "", values[r.IntN(len(values))]
			for _, c := range label {
				if c == '_' {
					c = []rune("_.-/: @é")[r.IntN(8)]
				}
				field += string(c)
			}
			fields, labels, of[label] = append(fields, field, value), append(labels, label, value), value
		}
		if of["service_name"] == "" {
			service := "unknown_service"
			for _, name := range slices.Backward(order) {
				if v := of[name]; v != "" {
					service = v
				}
			}
			labels = append(labels, "service_name", service)
		}
		delete(of, "service_name")
		if key := fmt.Sprint(of); seen[key] { // streams that are shown as one are tested elsewhere
			continue
		} else {
			seen[key] = true
		}
		var lines []logqltest.Line
		for k := range 1 + r.IntN(6) {
			lines = append(lines, logqltest.Line{Time: logqltest.Begin + r.Int64N(logqltest.Span), Text: fmt.Sprintf("line %d of %d", k, i)})
		}
		stored.Streams = append(stored.Streams, logqltest.Stream{Labels: fields, Lines: lines})
		shown.Streams = append(shown.Streams, logqltest.Stream{Labels: labels, Lines: lines})
	}
	return victorialogstest.AsStored(stored), victorialogstest.AsStored(shown), order
}

// serviceQueries select streams by labels that may be any of many fields.
func serviceQueries() (all []logqltest.Query) {
	for _, selector := range []string{
		`service_name="a"`, `service_name="ab"`, `service_name="a.b"`, `service_name="a\"b"`, `service_name="a b"`, `service_name="é"`, `service_name="unknown_service"`,
		`service_name="="`, `service_name="=a"`, `service_name=~"a|b"`, `service_name=~"a|unknown_service"`, `service_name=~"(?i)A|B"`, `service_name=~"a|é"`, `service_name!="a"`,
		`service_name=~"a.*"`, `service_name!~"a|b"`, `app_name="a"`, `app_kubernetes_io_name=~"a|b"`, `some_label="a b"`, `app_name=~"a|"`, `app_name=""`,
		`service_name="a",app="b"`, `service_name="a",app_name="b"`, `service_name=~"a|b",k8s_job_name!="a"`, `service_name="none"`, `service_name="a\\"`,
	} {
		if !strings.Contains(selector, `app="`) {
			selector += `,app=~".+"`
		}
		selector = "{" + selector + "}"
		for _, text := range []string{selector, selector + ` |= "1"`, `sum by (service_name) (count_over_time(` + selector + `[5m]))`, `count_over_time(` + selector + `[1m])`} {
			q := logqltest.Query{Text: text, Start: logqltest.Begin, End: logqltest.Begin + logqltest.Span, Limit: 1000}
			if strings.Contains(text, "count") {
				q.Step = int64(time.Minute)
			}
			all = append(all, q)
		}
	}
	return all
}

// TestServices: streams are found by the value of a label, whatever field it is made of.
func TestServices(t *testing.T) {
	some := 0
	for n := range uint64(20) {
		stored, shown, order := serviceData(rand.New(rand.NewPCG(n, 7)))
		at := httptest.NewServer(&linesServer{Dataset: stored})
		// The server counts in no cells.
		lines := slices.DeleteFunc(serviceQueries(), func(q logqltest.Query) bool { return q.Step > 0 })
		some += compareServices(t, serviceSource(t, at.URL, "7:1", order), shown, lines, fmt.Sprint(n, " ", order))
		at.Close()
	}
	if some < 200 {
		t.Errorf("only %d queries have a result", some)
	}
}

// TestServicesOfServer does the same with a real server.
func TestServicesOfServer(t *testing.T) {
	if *realServer == "" {
		t.Skip("needs a running VictoriaLogs: -victorialogs URL")
	}
	some, account := 0, uint32(time.Now().Unix())
	for n := range *sets {
		stored, shown, order := serviceData(rand.New(rand.NewPCG(*seed, uint64(n))))
		id := fmt.Sprint(account, ":", 2000+n)
		victorialogstest.Push(t, *realServer, id, stored)
		some += compareServices(t, serviceSource(t, *realServer, id, order), shown, serviceQueries(), fmt.Sprint(n, " ", order))
	}
	t.Logf("%d queries have a result", some)
}

func compareServices(t *testing.T, from *victorialogs.Source, shown *logqltest.Dataset, all []logqltest.Query, name string) (some int) {
	theirs, ours := logqltest.Over(from), logqltest.InMemory(shown)
	joint := slices.DeleteFunc(slices.Clone(all), func(q logqltest.Query) bool { return !strings.HasPrefix(q.Text, "count") })
	got := atOnce(theirs, joint)
	for i, q := range append(joint, all...) {
		want := logqltest.Run(context.Background(), ours, logqltest.Tenant, &q)
		if i >= len(got) {
			got = append(got, logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q))
		}
		if diff := logqltest.Diff(want, got[i], false); diff != "" {
			t.Errorf("%s: %s\n%s", name, q.String(), diff)
		}
		if !want.Empty() && want.Error == "" {
			some++
		}
	}
	return some
}

// TestServiceAlone: of a hundred streams, those with the value are sent.
func TestServiceAlone(t *testing.T) {
	d := &logqltest.Dataset{}
	for i := range 100 {
		s := logqltest.Stream{Labels: []string{"app.name", fmt.Sprint("app", i), "pod", "1"}}
		for k := range int64(20) {
			s.Lines = append(s.Lines, logqltest.Line{Time: logqltest.Begin + k*int64(time.Minute), Text: fmt.Sprint("line ", k)})
		}
		d.Streams = append(d.Streams, s)
	}
	server := &linesServer{Dataset: d}
	at := httptest.NewServer(server)
	defer at.Close()
	for _, text := range []string{`{service_name="app7"}`, `{app_name=~"app(7|8)"}`} {
		server.rows = 0
		q := logqltest.Query{Text: text, Start: logqltest.Begin, End: logqltest.Begin + int64(time.Hour), Limit: 100}
		got := logqltest.Run(context.Background(), logqltest.Over(serviceSource(t, at.URL, "7:1", []string{"app_name"})), logqltest.Tenant, &q)
		if got.Empty() || server.rows > 80 {
			t.Errorf("%s: %d rows are sent; %s", text, server.rows, got)
		}
	}
}
