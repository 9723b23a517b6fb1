package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// tailed is a partition that tells of what it applies.
type tailed struct {
	*partition
	mu    sync.Mutex
	fn    func(*model.Batch, func([]uint32) error)
	ended func()
	away  bool
}

func (p *tailed) Journal() wire.Journal {
	j := p.partition.Journal()
	p.mu.Lock()
	defer p.mu.Unlock()
	j.Ready = !p.away
	return j
}

func (p *tailed) Watch(fn func(*model.Batch, func([]uint32) error), ended func()) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fn, p.ended = fn, ended
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fn = nil
	}
}

// push applies lines of a stream, whose labels go along the first time.
func (p *tailed) push(app string, labels bool, lines ...string) { p.pushOf("a", app, labels, lines...) }

func (p *tailed) pushOf(tenant, app string, labels bool, lines ...string) {
	l := model.LabelsOf("app", app)
	b := &model.Batch{Tenant: tenant, Signal: model.Logs}
	for _, line := range lines {
		b.Text.AppendBlob(now, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(line)}), 0)
	}
	b.EndSeries(l.Key(seed, model.Logs))
	if labels {
		b.Labels.Append(0, l)
	}
	p.apply(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fn != nil {
		p.fn(b, func(some []uint32) error {
			if b.Labels.Len() > 0 {
				return nil
			}
			_, err := p.head.Label(context.Background(), b, some)
			return err
		})
	}
}

// following is a tail over two partitions in two servers.
type following struct {
	parts [2]*tailed
	far   *remote.Source
	got   chan string // lines, and "lost" for those that were left out
	ended chan error
	hold  sync.Mutex // held: the reader is slow
}

func follow(t *testing.T) *following {
	f := &following{got: make(chan string, 1<<17), ended: make(chan error, 1)}
	var o remote.Options
	for i := range f.parts {
		p := &tailed{partition: openPartition(t, fmt.Sprint("p", i))}
		f.parts[i] = p
		server := httptest.NewServer(peer.New(peer.Options{Partitions: func() []peer.Partition { return []peer.Partition{p} }}))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
			_ = p.head.Close()
		})
		o.Peers = append(o.Peers, server.Listener.Addr().String())
	}
	o.Refresh = 10 * time.Millisecond
	f.far = remote.New(o)
	t.Cleanup(f.far.Close)
	return f
}

// start begins to follow the streams of web.
func (f *following) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.ended <- <-f.ended
	})
	hand := func(prefix string) func(b *model.Batch) {
		return func(b *model.Batch) {
			f.hold.Lock()
			defer f.hold.Unlock()
			for i := range b.Keys {
				var lb model.LabelsBuilder
				b.BuildLabels(i, &lb)
				l, err := lb.Append(nil)
				if err != nil {
					panic(err)
				}
				for k := b.Text.Begin(i); k < b.Text.End(i); k++ {
					line, err := model.SplitLine(b.Text.Blob(int(k)))
					if err != nil {
						panic(err)
					}
					f.got <- fmt.Sprintf("%s%s %s", prefix, model.Labels(l).Get("app"), line.Text)
				}
			}
		}
	}
	ready := make(chan struct{})
	go func() {
		req := &model.Request{Tenant: "a", Signal: model.Logs, Quota: new(model.Quota), Cost: new(model.Cost), Matchers: []model.Matcher{
			{Name: "app", Op: model.MatchRegexp, Value: "web.*", Standard: true, Match: func(v string) bool { return strings.HasPrefix(v, "web") }},
		}}
		f.ended <- f.far.Follow(ctx, req, func() { close(ready) }, hand(""), hand("lost "))
	}()
	select {
	case <-ready:
	case err := <-f.ended:
		t.Fatal(err)
	}
}

func (f *following) wants(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-f.got:
		if got != want {
			t.Fatalf("got %q, expected %q", got, want)
		}
	case err := <-f.ended:
		t.Fatalf("waiting for %q: %v", want, err)
	}
}

// TestFollow: lines come with the labels of their streams, also of those that were met before; other streams
// and tenants do not.
func TestFollow(t *testing.T) {
	f := follow(t)
	f.parts[0].push("web-1", true, "before")
	f.start(t)
	f.parts[0].push("web-1", false, "one", "two")
	f.wants(t, "web-1 one")
	f.wants(t, "web-1 two")
	f.parts[1].push("db", true, "not this")
	f.parts[0].pushOf("b", "web-1", true, "of another tenant")
	f.parts[1].pushOf("b", "web-2", true, "of another tenant")
	f.parts[0].push("web-1", false, "still")
	f.wants(t, "web-1 still")
	f.parts[1].push("web-2", true, "three")
	f.wants(t, "web-2 three")
	f.parts[1].push("web-2", false, "four")
	f.wants(t, "web-2 four")
}

// TestFollowEnds: a partition that leaves ends the following, and so does one that comes.
func TestFollowEnds(t *testing.T) {
	f := follow(t)
	f.start(t)
	f.parts[1].ended()
	if err := <-f.ended; !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "p1") {
		t.Errorf("a partition left: %v", err)
	} else {
		f.ended <- nil
	}
	f = follow(t)
	f.parts[1].away = true
	f.start(t)
	f.parts[1].mu.Lock()
	f.parts[1].away = false
	f.parts[1].mu.Unlock()
	if err := <-f.ended; !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "p1") {
		t.Errorf("a partition came: %v", err)
	} else {
		f.ended <- nil
	}
}

// TestFollowSlowly: a reader that is too slow makes the holder leave lines out, which it says with their
// streams, and it holds no more than its bounds.
func TestFollowSlowly(t *testing.T) {
	f := follow(t)
	f.start(t)
	f.hold.Lock()
	random := rand.NewChaCha8([32]byte{})
	bytes := make([]byte, 512<<10)
	const n = 60
	for i := range n { // more than the holder and the connection take
		_, _ = random.Read(bytes) // never fails
		f.parts[0].push("web-1", i == 0, string(bytes))
		if err := f.parts[0].head.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.hold.Unlock()
	came, lost := 0, 0
	for came+lost < n {
		select {
		case got := <-f.got:
			if strings.HasPrefix(got, "lost web-1") {
				lost++
			} else {
				came++
			}
		case err := <-f.ended:
			t.Fatalf("%d lines came, %d were left out, then: %v", came, lost, err)
		}
	}
	if came == 0 || lost == 0 {
		t.Errorf("%d lines came, %d were left out", came, lost)
	}
}

// TestFollowPanics: a panic of what takes lines ends the following, also while others wait for their turn.
func TestFollowPanics(t *testing.T) {
	f := follow(t)
	req := &model.Request{Tenant: "a", Signal: model.Logs, Quota: new(model.Quota), Cost: new(model.Cost)}
	push := func() {
		f.parts[0].push("web-1", true, "one")
		f.parts[1].push("web-2", true, "two")
	}
	err := f.far.Follow(t.Context(), req, push, func(*model.Batch) { panic("a hostile line") }, func(*model.Batch) {})
	if err == nil || err.Error() != "unexpected error: a hostile line" {
		t.Error(err)
	}
}
