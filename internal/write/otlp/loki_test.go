package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

var rewrite = flag.Bool("rewrite", false, "write the cases anew; go test -record in test/logql-oracle/push then asks Loki")

// Our responses are those that Loki gave to the same cases, which test/logql-oracle/push recorded.
func TestLokiSaysTheSame(t *testing.T) {
	if *rewrite {
		logstest.WriteCases(t, allCases(t))
		return
	}
	r := logstest.Recorded{
		AtLeast: 20,
		Handler: func(p *write.Path) http.Handler { return New(Options{Sink: p, Rules: logs.DefaultRules()}).Logs() },
		Same:    sameResponse,
		// Loki returns streams in any order; they were sorted when they were recorded.
		Align: func(ours, _ []logstest.Line) {
			slices.SortFunc(ours, func(a, b logstest.Line) int { return strings.Compare(marshal(a), marshal(b)) })
		},
	}
	r.Run(t)
}

func sameResponse(ours *httptest.ResponseRecorder, loki *logstest.Response) bool {
	switch {
	case loki.Refused != "":
		// What Loki refuses as a whole is here a partial success, unless it cannot be read.
		return ours.Code/100 == 4 || ours.Code == http.StatusOK && strings.Contains(ours.Body.String(), "normalization for label name")
	case len(loki.Errors) == 0:
		return ours.Code == http.StatusOK && ours.Body.Len() <= len("{}")
	}
	text := strings.ReplaceAll(ours.Body.String(), `\"`, `"`)
	for _, e := range loki.Errors {
		if !strings.Contains(text, e) && (len(e) < 1000 || !strings.Contains(text, "has label value too long: 'xxx")) {
			return false
		}
	}
	return true
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func allCases(t *testing.T) (out []logstest.Case) {
	add := func(name string, f func(ld plog.Logs)) {
		ld := plog.NewLogs()
		f(ld)
		pb, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
		if err != nil {
			t.Fatal(err)
		}
		js, err := plogotlp.NewExportRequestFromLogs(ld).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		encoding := ""
		if len(pb) > 10_000 {
			pb, js, encoding = gzipped(pb), gzipped(js), "gzip"
		}
		out = append(out,
			logstest.Case{Name: name, Path: LogsPath, ContentType: "application/x-protobuf", ContentEncoding: encoding, Body: pb},
			logstest.Case{Name: name + ", JSON", Path: LogsPath, ContentType: "application/json", ContentEncoding: encoding, Body: js},
		)
	}
	record := func(name string, f func(r plog.LogRecord)) {
		add(name, func(ld plog.Logs) {
			rl := ld.ResourceLogs().AppendEmpty()
			rl.Resource().Attributes().PutStr("service.name", "s")
			r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			r.SetTimestamp(pcommon.Timestamp(now))
			f(r)
		})
	}
	resource := func(name string, attributes ...string) {
		add("resource: "+name, func(ld plog.Logs) {
			rl := ld.ResourceLogs().AppendEmpty()
			for i := 0; i+1 < len(attributes); i += 2 {
				rl.Resource().Attributes().PutStr(attributes[i], attributes[i+1])
			}
			r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			r.SetTimestamp(pcommon.Timestamp(now))
			r.Body().SetStr("x")
		})
	}
	add("all that there is", func(ld plog.Logs) {
		sampleLogs().CopyTo(ld)
		// Loki keeps all equal names of a record, its scope and its resource, and uses its own clock's
		// time.
		ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().Attributes().Remove("host.name")
		// Loki 3.7 does not know the event name, and treats an empty service.name as a name.
		ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetEventName("")
		ld.ResourceLogs().At(2).Resource().Attributes().Remove("service.name")
		ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().RemoveIf(func(r plog.LogRecord) bool {
			return r.Timestamp() == 0 && r.ObservedTimestamp() == 0
		})
	})
	add("nothing", func(plog.Logs) {})
	resource("none")
	resource("a service", "service.name", "a", "service.namespace", "b", "service.instance.id", "c")
	resource("no service", "container.name", "c", "k8s.container.name", "k")
	resource("only a job", "k8s.job.name", "j")
	resource("an empty service", "service.name", "", "k8s.pod.name", "p")
	resource("others", "host.name", "h", "service", "x", "app", "y", "deployment.environment.name", "prod", "cloud.region", "eu", "cloud.availability_zone", "eu-1")
	resource("all of Kubernetes", "k8s.cluster.name", "1", "k8s.namespace.name", "2", "k8s.replicaset.name", "3", "k8s.deployment.name", "4", "k8s.statefulset.name", "5", "k8s.daemonset.name", "6", "k8s.cronjob.name", "7", "deployment.environment", "8")
	resource("a long value", "service.name", strings.Repeat("x", 3000))
	resource("a name of dots", "..", "x")
	resource("a level", "level", "WARN")
	resource("level as a label has no effect", "service.name", "level=error")
	for i, f := range []func(v pcommon.Value){
		func(v pcommon.Value) { v.SetStr("x\xffé") }, func(v pcommon.Value) { v.SetBool(false) }, func(v pcommon.Value) { v.SetInt(-5) },
		func(v pcommon.Value) { v.SetDouble(1e21) }, func(v pcommon.Value) { v.SetDouble(0.1) }, func(v pcommon.Value) { v.SetDouble(-1e-9) },
		func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{1, 2, 3}) }, func(pcommon.Value) {},
		func(v pcommon.Value) {
			m := v.SetEmptyMap()
			m.PutStr("b", "1\"\\\n\t\x02")
			m.PutEmptyMap("a").PutEmptySlice("l").AppendEmpty().SetInt(3)
			m.PutEmptyBytes("c").FromRaw([]byte{255})
			m.PutDouble("d", 2)
			m.PutEmpty("e")
		},
		func(v pcommon.Value) {
			l := v.SetEmptySlice()
			l.AppendEmpty().SetStr("\u2028ü")
			l.AppendEmpty().SetEmptyMap()
			l.AppendEmpty().SetEmptySlice()
			l.AppendEmpty().SetBool(true)
		},
	} {
		record(fmt.Sprint("body ", i), func(r plog.LogRecord) { f(r.Body()) })
		record(fmt.Sprint("attribute ", i), func(r plog.LogRecord) { f(r.Attributes().PutEmpty("a.b")) })
	}
	for _, n := range []plog.SeverityNumber{0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25} {
		record(fmt.Sprint("severity ", n), func(r plog.LogRecord) { r.SetSeverityNumber(n); r.Body().SetStr("lvl=wrn") })
	}
	record("severity text", func(r plog.LogRecord) { r.SetSeverityNumber(17); r.SetSeverityText("Informational") })
	record("observed later", func(r plog.LogRecord) { r.SetObservedTimestamp(pcommon.Timestamp(now + 7)) })
	record("only observed", func(r plog.LogRecord) {
		r.SetTimestamp(0)
		r.SetObservedTimestamp(pcommon.Timestamp(now + 7))
	})
	record("too old", func(r plog.LogRecord) { r.SetTimestamp(1) })
	record("an event as an attribute", func(r plog.LogRecord) { r.Attributes().PutStr("event_name", "x") })
	record("too much", func(r plog.LogRecord) { r.Attributes().PutStr("a", strings.Repeat("x", 70_000)) })
	record("too many", func(r plog.LogRecord) {
		for i := range 130 {
			r.Attributes().PutInt(fmt.Sprint("a", i), 1)
		}
	})
	return out
}
