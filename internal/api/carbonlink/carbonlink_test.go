package carbonlink

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source has two points of a.b.
type source struct{}

func (source) Points(_ context.Context, path string) ([]int64, []float64, error) {
	switch path {
	case "a.b":
		return []int64{1700000000, 1700000060}, []float64{1.5, -2}, nil
	case "panics":
		panic("a hostile page")
	case "fails":
		return nil, nil, fmt.Errorf("%w: the disk", model.ErrTransient)
	}
	return nil, nil, nil
}

func (source) Method(string) (string, error) { return "sum", nil }

func listen(t *testing.T, change ...func(*Options)) *Server {
	t.Helper()
	o := Options{Listen: "127.0.0.1:0", Source: source{}, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// ask sends a request and returns the answer.
func ask(t *testing.T, nc net.Conn, request []byte) []byte {
	t.Helper()
	if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		t.Fatal(err)
	}
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(nc, answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// show writes a decoded value as text.
func show(d *pickle.Decoder, v pickle.Value) string {
	switch v.Kind() {
	case pickle.Number:
		return fmt.Sprintf("%.1f", v.Float())
	case pickle.Text:
		return string(d.Text(v))
	}
	var parts []string
	all := d.Elements(v)
	for e, ok := all.Next(); ok; e, ok = all.Next() {
		parts = append(parts, show(d, e))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// TestAnswers sends requests as Python pickles them in all of its protocols.
// test/carbon-oracle/python/carbonlink_requests.py makes the file.
func TestAnswers(t *testing.T) {
	text, err := os.ReadFile("testdata/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	nc, n := dial(t, listen(t)), 0
	for line := range bytes.Lines(text) {
		var c struct{ Pickle, Want string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		request, err := hex.DecodeString(c.Pickle)
		if err != nil {
			t.Fatal(err)
		}
		n++
		answer := ask(t, nc, request)
		d := pickle.Decoder{Dicts: true, Reserve: func(int) error { return nil }}
		v, err := d.Decode(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(&d, v); !strings.HasPrefix(got, c.Want) {
			t.Errorf("request %q: got %s, want %s", request, got, c.Want)
		}
	}
	if n < 30 {
		t.Errorf("%d requests", n)
	}
}

func TestTooLongRequestClosesTheConnection(t *testing.T) {
	nc := dial(t, listen(t))
	if _, err := nc.Write([]byte{0x40, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	s := listen(t, func(o *Options) { o.MaxConnections = 1 })
	first := dial(t, s)
	ask(t, first, []byte("N."))
	if _, err := dial(t, s).Read(make([]byte, 1)); err == nil {
		t.Error("a second connection is open")
	}
	ask(t, first, []byte("N."))
}

// TestRepeatedTextIsNotCopied: the memo of a pickle has a long text once, and the list has it 250,000 times.
// The answer ends at its bound.
func TestRepeatedTextIsNotCopied(t *testing.T) {
	long := strings.Repeat("x", 500_000)
	request := []byte("}X\x04\x00\x00\x00typeX\x10\x00\x00\x00cache-query-bulksX\x07\x00\x00\x00metrics](X")
	request = append(binary.LittleEndian.AppendUint32(request, uint32(len(long))), long...)
	request = append(request, "q\x00"...)
	request = append(request, strings.Repeat("h\x00", 250_000)...)
	request = append(request, "es."...)
	asked := 0
	s := &Server{o: Options{Source: counting{n: &asked}, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}, metrics: newMetrics(nil), ctx: context.Background()}
	d := pickle.Decoder{Dicts: true, Reserve: func(int) error { return nil }}
	v, err := d.Decode(s.answer(request, new(model.Quota))[4:])
	if err != nil {
		t.Fatal(err)
	}
	if why, ok := d.Get(v, "error"); !ok || !strings.Contains(string(d.Text(why)), "ask for fewer metrics") {
		t.Errorf("the answer has no error about its length")
	}
	if most := maxAnswer/len(long) + 1; asked > most {
		t.Errorf("%d paths are read, want at most %d", asked, most)
	}
}

// TestRequestsAreCharged: a request is charged its bytes, its values and its answer, and gets an error beyond
// its quota. Then the connection takes others.
func TestRequestsAreCharged(t *testing.T) {
	pool := &model.QueryPool{MaxBytes: 8 << 20}
	s := listen(t, func(o *Options) {
		o.Quota = func() *model.Quota { return &model.Quota{MaxBytes: 512 << 10, Pool: pool} }
		o.Transit = o.Quota
	})
	nc := dial(t, s)
	bulk := func(n int) []byte {
		request := "}X\x04\x00\x00\x00typeX\x10\x00\x00\x00cache-query-bulksX\x07\x00\x00\x00metrics](X\x03\x00\x00\x00a.bq\x00"
		return []byte(request + strings.Repeat("h\x00", n) + "es.")
	}
	for _, c := range []struct {
		what, want string
		request    []byte
	}{
		{"small", "", bulk(100)},
		{"a large answer", "query.max-bytes", bulk(20_000)},
		{"many values", "query.max-bytes", append([]byte("}X\x04\x00\x00\x00typeX\x01\x00\x00\x00xsX\x01\x00\x00\x00y]("), append(bytes.Repeat([]byte("N"), 100_000), "es."...)...)},
		{"large", "query.max-bytes", append(make([]byte, 1<<20-1), '.')},
		{"small again", "", bulk(100)},
	} {
		d := pickle.Decoder{Dicts: true, Reserve: func(int) error { return nil }}
		v, err := d.Decode(ask(t, nc, c.request))
		if err != nil {
			t.Fatal(err)
		}
		why, failed := d.Get(v, "error")
		if failed != (c.want != "") || failed && !strings.Contains(string(d.Text(why)), c.want) {
			t.Errorf("%s: error %q, want %q", c.what, d.Text(why), c.want)
		}
	}
	if err := s.Close(); err != nil { // waits for the end of the request
		t.Error(err)
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes are held", pool.Used())
	}
}

// counting counts the paths that are read.
type counting struct {
	source
	n *int
}

func (c counting) Points(context.Context, string) ([]int64, []float64, error) {
	*c.n++
	return nil, nil, nil
}

// FuzzAnswer: any request gets an answer that can be decoded.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"}X\x04\x00\x00\x00typeX\x0b\x00\x00\x00cache-querysX\x06\x00\x00\x00metricX\x03\x00\x00\x00a.bs.",
		"(dp0\nVtype\np1\nVcache-query-bulk\nsVmetrics\n(lp2\nVa.b\naVfails\nas.", "N.", "}(u.", "(NNd.", "}NN.", "}}NsNNs.",
	} {
		f.Add([]byte(s))
	}
	s := &Server{o: Options{Source: source{}, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}, metrics: newMetrics(nil), ctx: context.Background()}
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) > 1<<16 {
			return
		}
		d := pickle.Decoder{Dicts: true, Reserve: func(int) error { return nil }}
		if v, err := d.Decode(s.answer(request, new(model.Quota))[4:]); err != nil || v.Kind() != pickle.Dict {
			t.Errorf("%q: the answer is %s, error %v", request, v.Kind(), err)
		}
	})
}

// TestPanic: a request that panics gets an error, and the next one on the connection its answer.
func TestPanic(t *testing.T) {
	nc := dial(t, listen(t))
	for path, want := range map[string]string{"panics": "unexpected error: a hostile page", "a.b": "datapoints"} {
		answer := ask(t, nc, []byte("(dp0\nVtype\np1\nVcache-query\nsVmetric\nV"+path+"\ns."))
		if !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s: %q", path, answer)
		}
	}
}
