package answer

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// fixed is a store in which nothing changes until somebody says so.
type fixed struct{ stale map[uint64]bool }

func (f fixed) Clock() uint64 { return 1 }

func (f fixed) Look(context.Context, []string, *model.Reach) string { return "" }

func (f fixed) Changed(at uint64, _ []string, _ *model.Reach) string {
	if f.stale[at] {
		return "rows"
	}
	return ""
}

func newTier(bytes int64, ledger Ledger) *Tier {
	return New(Options{
		MaxBytes: bytes, State: fixed{map[uint64]bool{7: true}}, Causes: []string{"rows"}, Ledger: ledger, Registerer: prometheus.NewRegistry(),
	})
}

func keyOf(n int) (k Key) {
	copy(k[:], fmt.Sprint(n))
	return k
}

func answerOf(tenant string, size int) *Answer {
	text := make([]byte, size) // does not shrink much
	for i, r := 0, rand.New(rand.NewPCG(uint64(size), 3)); i < size; i++ {
		text[i] = byte(r.Uint32())
	}
	return &Answer{Body: NewBody(text), Tenants: []string{tenant}, Reach: new(model.Reach)}
}

// held adds up what the tier holds.
func (t *Tier) held() (sum int64) {
	for e := t.recent.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*entry).bytes
	}
	return sum
}

// ledger adds up what it is told.
type ledger struct{ hits, misses, kept, left, bytes int64 }

func (l *ledger) Asked(_ string, hit bool, _ int64) {
	if hit {
		l.hits++
		return
	}
	l.misses++
}

func (l *ledger) Kept(_ string, n int64) {
	l.kept++
	l.bytes += n
}

func (l *ledger) Left(_ string, n int64, _ bool) {
	l.left++
	l.bytes -= n
}

// TestBounds: whatever comes and is read, the memory has its bound, and a tenant its share.
func TestBounds(t *testing.T) {
	const most = 1 << 20
	var counted ledger
	tier, rng := newTier(most, &counted), rand.New(rand.NewPCG(1, 2))
	var reading []Reading
	for i := range 3_000 {
		tenant := string(rune('a' + min(rng.IntN(10), rng.IntN(10))))
		switch k := keyOf(rng.IntN(200)); rng.IntN(4) {
		case 0:
			tier.Put(k, answerOf(tenant, rng.IntN(1<<rng.IntN(18))))
		case 1, 2:
			if a, ok := tier.Get(context.Background(), k, []string{tenant}); ok {
				a.Encoded([]Encoding{Identity, Gzip, Zstd}[rng.IntN(3)])
				reading = append(reading, a)
			}
		default:
			if len(reading) > 0 {
				reading[0].Done()
				reading = reading[1:]
			}
		}
		for len(reading) > 4 {
			reading[0].Done()
			reading = reading[1:]
		}
		// What has left and is still being read is not evicted, but takes the room of others.
		if held := tier.held(); held > most || tier.bytes > most && held > 0 {
			t.Fatalf("step %d: %d bytes held, %d in all", i, held, tier.bytes)
		}
		for name, o := range tier.owners {
			if o.bytes > most/2 {
				t.Fatalf("step %d: tenant %s has %d bytes", i, name, o.bytes)
			}
		}
	}
	for _, a := range reading {
		a.Done()
	}
	if tier.bytes != tier.held() {
		t.Errorf("%d bytes are counted, %d held", tier.bytes, tier.held())
	}
	if counted.hits == 0 || counted.misses == 0 || counted.kept-counted.left != int64(len(tier.entries)) {
		t.Errorf("the ledger has %+v, and the tier %d answers", counted, len(tier.entries))
	}
}

// TestStale: an answer that does not hold any more leaves.
func TestStale(t *testing.T) {
	tier := newTier(1<<20, nil)
	a := answerOf("a", 10)
	a.Clock = 7
	tier.Put(keyOf(1), a)
	if _, ok := tier.Get(context.Background(), keyOf(1), []string{"a"}); ok || tier.bytes != 0 {
		t.Errorf("got %v, %d bytes", ok, tier.bytes)
	}
	if n := testutil.ToFloat64(tier.metrics.stale["rows"]); n != 1 {
		t.Errorf("%v stale answers", n)
	}
}

// TestEncodings: each is made once, and is the body.
func TestEncodings(t *testing.T) {
	tier := newTier(1<<20, nil)
	text := strings.Repeat(`{"metric":{"job":"x"},"values":[[1700000000,"1"]]}`, 500)
	tier.Put(keyOf(1), &Answer{Body: NewBody([]byte(text)), Tenants: []string{"a"}, Reach: new(model.Reach)})
	var clients sync.WaitGroup
	first := make([][]byte, 2)
	for i := range 20 {
		clients.Go(func() {
			a, ok := tier.Get(context.Background(), keyOf(1), []string{"a"})
			if !ok {
				t.Error("it is gone")
				return
			}
			defer a.Done()
			a.Encoded([]Encoding{Gzip, Zstd}[i%2])
		})
	}
	clients.Wait()
	before := tier.bytes
	a, _ := tier.Get(context.Background(), keyOf(1), []string{"a"})
	defer a.Done()
	for i, enc := range []Encoding{Gzip, Zstd} {
		first[i] = a.Encoded(enc)
		if len(first[i]) >= len(text)/4 || &a.Encoded(enc)[0] != &first[i][0] {
			t.Errorf("%s: %d bytes of %d", enc, len(first[i]), len(text))
		}
	}
	if tier.bytes != before || before != tier.held() {
		t.Errorf("%d bytes, and then %d, %d held", before, tier.bytes, tier.held())
	}
	var written bytes.Buffer
	if _, err := a.Body.WriteTo(&written); err != nil || written.String() != text || a.Body.Size != len(text) {
		t.Errorf("as it was: %v, %d bytes", err, written.Len())
	}
	if a.Encoded(Identity) != nil {
		t.Error("the text is kept besides")
	}
	small := NewBody([]byte("small"))
	for _, enc := range []Encoding{Identity, Gzip, Zstd} {
		if got, _ := small.Encoded(enc); enc == Identity && string(got) != "small" || enc != Identity && got != nil {
			t.Errorf("a small body in %q: %q", enc, got)
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(first[0]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || string(plain) != text {
		t.Errorf("gzip: %v", err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if plain, err = d.DecodeAll(first[1], nil); err != nil || string(plain) != text {
		t.Errorf("zstd: %v", err)
	}
}

// TestGetAllocates nothing.
func TestGetAllocates(t *testing.T) {
	tier, tenants := newTier(1<<20, nil), []string{"a"}
	tier.Put(keyOf(1), answerOf("a", 100))
	n := testing.AllocsPerRun(100, func() {
		a, _ := tier.Get(context.Background(), keyOf(1), tenants)
		a.Done()
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGet(b *testing.B) {
	tier, tenants := newTier(64<<20, nil), []string{"a"}
	for i := range 1000 {
		tier.Put(keyOf(i), answerOf("a", 1000))
	}
	k := keyOf(500)
	b.ReportAllocs()
	for b.Loop() {
		a, ok := tier.Get(context.Background(), k, tenants)
		if !ok {
			b.Fatal("miss")
		}
		a.Done()
	}
}

// BenchmarkOtter looks up the same in the library that the tier of pages uses.
func BenchmarkOtter(b *testing.B) {
	c, err := otter.New(&otter.Options[Key, *Answer]{MaximumSize: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		c.Set(keyOf(i), answerOf("a", 1000))
	}
	k := keyOf(500)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.GetIfPresent(k); !ok {
			b.Fatal("miss")
		}
	}
}

// elsewhere is a store of which others write a part, and do not always say what.
type elsewhere struct {
	fixed
	unknown *string
}

func (e elsewhere) Look(context.Context, []string, *model.Reach) string { return *e.unknown }

// TestUnknown: an answer of which it cannot be known now whether it holds is not used, and stays for the time
// when that is known. A client that has left does not count.
func TestUnknown(t *testing.T) {
	unknown := ""
	tier := New(Options{MaxBytes: 1 << 20, State: elsewhere{unknown: &unknown}, Causes: []string{"unknown"}, Registerer: prometheus.NewRegistry()})
	a := answerOf("a", 100)
	a.Reach.AddFurther(model.TimeRange{Min: 1, Max: 2})
	tier.Put(keyOf(1), a)
	get := func(ctx context.Context, want bool) {
		t.Helper()
		r, ok := tier.Get(ctx, keyOf(1), []string{"a"})
		if ok != want {
			t.Errorf("%v, want %v", ok, want)
		}
		if ok {
			r.Done()
		}
	}
	get(context.Background(), true)
	unknown = "unknown"
	left, leave := context.WithCancel(context.Background())
	leave()
	get(left, false)
	if n := testutil.ToFloat64(tier.metrics.stale["unknown"]); n != 0 {
		t.Errorf("a client that has left counts as %v stale answers", n)
	}
	get(context.Background(), false)
	if n := testutil.ToFloat64(tier.metrics.stale["unknown"]); n != 1 {
		t.Errorf("%v unknown answers, want 1", n)
	}
	unknown = ""
	get(context.Background(), true)
}
