package victorialogs

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/logs"
)

// decoded is how many lines the response of the benchmark has.
const decoded = 100

// response returns the rows of some streams as VictoriaLogs sends them for a page, with structured metadata.
func response() []byte {
	var b bytes.Buffer
	for i := range decoded {
		at := time.Unix(1e9, int64(i)*1e7).UTC().Format(time.RFC3339Nano)
		app, pod := fmt.Sprintf("app-%d", i/20%5), fmt.Sprintf("pod-%d", i/20)
		fmt.Fprintf(&b, `{"_time":"%s","_stream":"{app=\"%s\",env=\"prod\",pod=\"%s\"}","_msg":"level=info msg=\"request %d done\" path=/api/v1/items/%d status=200 took=%dms","app":"%s","env":"prod","pod":"%s","trace_id":"%032x"}`+"\n",
			at, app, pod, i, i*7, i, app, pod, i*7919)
	}
	return b.Bytes()
}

// plainResponse returns the rows of Loki-VL-proxy's own benchmark: one stream, and a level that is there.
func plainResponse() []byte {
	var b bytes.Buffer
	for i := range decoded {
		fmt.Fprintf(&b, `{"_time":"2024-01-15T10:30:%02d.000Z","_msg":"request %d processed","_stream":"{app=\"nginx\",namespace=\"prod\"}","app":"nginx","namespace":"prod","level":"info"}`+"\n", i%60, i)
	}
	return b.Bytes()
}

// decoder decodes the response as a page does, again and again.
type decoder struct {
	source *Source
	page   *page
	body   []byte
}

func newDecoder(t testing.TB, body []byte) *decoder {
	s := New(Options{
		Settings: Settings{Source: At("http://127.0.0.1:1"), Requests: 1}, Seed: 1,
		Rules: logs.Rules{ServiceNames: []string{"app"}, DetectLevels: true}, Registerer: prometheus.NewRegistry(),
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	req := request()
	d := &directory{source: s, req: req, streams: newStreamSet(s, req)}
	x := &decoder{source: s, body: body}
	rows := newRowReader(bytes.NewReader(x.body))
	var cells []cell
	for {
		row, err := rows.next()
		if err != nil {
			break
		}
		st, err := d.streams.add(valueOf(row, "_stream"))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(cells); n == 0 || cells[n-1].stream != st {
			cells = append(cells, cell{stream: st, TimeRange: model.TimeRange{Min: 0, Max: 2e18}})
		}
		cells[len(cells)-1].rows++
	}
	x.page = newPage(d, cells)
	return x
}

// decode reads the response, and returns how many lines it has.
func (x *decoder) decode() (n int, err error) {
	p := x.page
	f := newFetch(p, whole)
	defer f.release()
	rows := newRowReader(bytes.NewReader(x.body))
	for {
		row, err := rows.next()
		if err != nil {
			break
		}
		if err := f.add(row); err != nil {
			return 0, err
		}
	}
	rows.release()
	if err := p.keepLocked(f, whole); err != nil {
		return 0, err
	}
	for _, l := range p.of {
		n += len(l.times)
	}
	p.releaseLocked()
	return n, nil
}

// TestDecodeAllocations: lines of a response are decoded into shared memory, not each into its own.
func TestDecodeAllocations(t *testing.T) {
	x := newDecoder(t, response())
	if n, err := x.decode(); n != decoded || err != nil {
		t.Fatalf("%d lines, %v", n, err)
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = x.decode() }); n > decoded {
		t.Errorf("%v allocations for %d lines", n, decoded)
	}
}

// BenchmarkDecode decodes a response of 100 lines into the lines of streams, with labels, levels and
// structured metadata.
func BenchmarkDecode(b *testing.B) { benchmarkDecode(b, response()) }

// BenchmarkDecodePlain decodes the lines of the other front's benchmark.
func BenchmarkDecodePlain(b *testing.B) { benchmarkDecode(b, plainResponse()) }

func benchmarkDecode(b *testing.B, body []byte) {
	x := newDecoder(b, body)
	b.ReportAllocs()
	b.SetBytes(int64(len(x.body)))
	began := processorTime(b)
	for b.Loop() {
		if n, err := x.decode(); n != decoded || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the time of processors that the process has taken. On a machine with other work, it
// says more than the clock.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
