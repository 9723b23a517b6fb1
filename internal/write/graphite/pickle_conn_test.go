package graphite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// framed puts the length before a pickle.
func framed(pickle []byte) string {
	return string(append(binary.BigEndian.AppendUint32(nil, uint32(len(pickle))), pickle...))
}

// frameOf is a frame with n points of series of a prefix.
func frameOf(prefix string, n int, value float64) string {
	return framed(points(n, func(i int) string { return fmt.Sprintf("%s.%d", prefix, i) }, func(int) float64 { return value }))
}

func startPickle(t *testing.T, s *store, o Options, limits write.Limits) *bench {
	t.Helper()
	o.PickleListen = "127.0.0.1:0"
	return start(t, s, o, limits)
}

func (b *bench) dialPickle(t *testing.T) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", b.PickleAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func (b *bench) wantLost(t *testing.T, reason string, n float64) {
	t.Helper()
	b.want(t, b.metrics.pickle.lost.WithLabelValues(reason), n)
}

// wantNothingHeld expects the whole byte budget to be free.
func (b *bench) wantNothingHeld(t *testing.T) {
	t.Helper()
	b.want(t, b.metrics.pickleBytes, 0)
	eventually(t, func() bool {
		g, err := b.o.Sink.Admit(t.Context(), "x", b.o.Sink.Limits("x").MaxInflightBytes)
		if err == nil {
			g.Release()
		}
		return err == nil
	}, func() string { return "a part of the budget is held" })
}

func TestPicklesAreStored(t *testing.T) {
	b := startPickle(t, newStore(), Options{}, limits())
	nc := b.dialPickle(t)
	first := "(l(S'a.b'\n(L1700000000L\nS'1.5'\ntta(S'a.c;dc=x'\n(L-1L\nF2\ntta(S'a.b'\n(I1700000060\nS'nan'\ntta(S'bad'\n(I1700000060\nNtta(S'a.d'\n(L9999999999999L\nI1\ntta."
	both := framed([]byte(first)) + framed([]byte("](X\x03\x00\x00\x00a.bJ<\xf1SeK\x07\x86\x86e."))
	say(t, nc, both[:3])
	time.Sleep(2 * time.Millisecond)
	say(t, nc, both[3:40])
	time.Sleep(2 * time.Millisecond)
	say(t, nc, both[40:])
	b.s.wait(t, 3)
	b.want(t, b.metrics.pickle.transport.received, 3)
	b.want(t, b.metrics.pickle.transport.lines, 6)
	b.want(t, b.metrics.pickle.transport.bad, 1)
	b.want(t, b.metrics.pickle.transport.bytes, float64(len(both)))
	b.want(t, b.metrics.pickle.received, 2)
	r := b.s.Rows[`anonymous{__name__="a.b"}`]
	if r.Len() != 2 || r.Values[0] != math.Float64bits(1.5) || r.Values[1] != math.Float64bits(7) || r.Times[1] != 1_700_000_060_000_000_000 {
		t.Fatalf("got %+v", r)
	}
	if r := b.s.Rows[`anonymous{__name__="a.c", dc="x"}`]; r == nil || r.Times[0] != testNow/second*second {
		t.Fatalf("got %v", b.s.Rows)
	}
	b.wantDiscarded(t, map[string]float64{"bad_item": 1, "nan": 1, "time_out_of_range": 1})
	if log := b.log.String(); !strings.Contains(log, "bad point in a pickle: the value is not a number") || !strings.Contains(log, `('bad', (1700000060, None))`) ||
		!strings.Contains(log, nc.LocalAddr().String()) {
		t.Error(log)
	}
	nc.(*net.TCPConn).CloseWrite()
	if n, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("%d, %v", n, err)
	}
	b.wantNothingHeld(t)
}

// TestRealPicklesInOneConnection sends every recorded pickle over one connection. A refused pickle
// costs only itself.
func TestRealPicklesInOneConnection(t *testing.T) {
	l := limits()
	l.MaxFuture, l.MaxValueBytes = math.MaxInt64, 0
	b := startPickle(t, newStore(), Options{}, l)
	nc := b.dialPickle(t)
	rows, refused := 0, 0
	for _, g := range readGolden(t) {
		got, err := readPickle(t, g.pickle)
		if err != nil || g.name == "top-none" || g.name == "top-int" || g.name == "top-text" {
			refused++
		}
		rows += len(got.rows)
		say(t, nc, framed(g.pickle))
	}
	if rows < 3000 || refused < 100 {
		t.Fatalf("%d rows, %d refused", rows, refused)
	}
	b.s.wait(t, rows)
	b.wantLost(t, undecodable, float64(refused))
}

func TestBrokenFrames(t *testing.T) {
	b := startPickle(t, newStore(), Options{MaxFrameBytes: 100_000}, limits())
	good := frameOf("good", 1, 1)
	stored := 0
	for _, c := range []struct {
		reason, input, log string
		goesOn             bool
	}{
		{undecodable, framed([]byte("cos\nsystem\n(S'true'\ntR.")), "opcode GLOBAL", true},
		{undecodable, framed(nil), "ends without a STOP", true},
		{undecodable, framed([]byte("N.")), "expected a list of points, got None", true},
		{undecodable, framed(bytes.Repeat([]byte("("), 9000)), "nested MARKs", true},
		{tooLong, "put a.b.c 1 1700000000\n", "is a plaintext sender using the pickle port", false},
		{tooLong, "\x00\x01\x86\xa1", "the sender announced a pickle of 100001 bytes, the limit is 100000 (limit: a 16th of limits.inflight-bytes, at most 16 MiB)", false},
		{cutOff, "\x00\x00", "reading the length", false},
		{cutOff, "\x00\x00\x00\x05]", "unexpected EOF", false},
		{cutOff, "\x00\x01\x00\x00" + strings.Repeat("]", 5000), "unexpected EOF", false},
		{cutOff, "\x00\x01\x00\x00" + strings.Repeat("]", 50_000), "unexpected EOF", false},
	} {
		b.Listener.log.mu.Lock()
		b.Listener.log.last[kindBadFrame] = time.Time{} // the log has at most one a second
		b.Listener.log.mu.Unlock()
		nc := b.dialPickle(t)
		before, logged := testutil.ToFloat64(b.metrics.pickle.lost.WithLabelValues(c.reason)), len(b.log.String())
		say(t, nc, good+c.input)
		if c.goesOn {
			say(t, nc, good)
			stored++
		}
		stored++
		nc.(*net.TCPConn).CloseWrite()
		_, _ = io.ReadAll(nc)
		b.wantLost(t, c.reason, before+1)
		eventually(t, func() bool { return strings.Contains(b.log.String()[logged:], c.log) }, func() string {
			return fmt.Sprintf("%q is not in the log: %s", c.log, b.log.String()[logged:])
		})
		b.s.wait(t, stored)
	}
	b.wantNothingHeld(t)
}

func TestSlowFramesAreCutOff(t *testing.T) {
	b := startPickle(t, newStore(), Options{FrameTimeout: 50 * time.Millisecond}, limits())
	nc := b.dialPickle(t)
	say(t, nc, frameOf("a", 1, 1)+"\x00\x00\x10\x00]")
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	b.wantLost(t, tooSlow, 1)
	b.s.wait(t, 1)
}

func TestIdlePickleConnectionsAreClosed(t *testing.T) {
	b := startPickle(t, newStore(), Options{IdleTimeout: 50 * time.Millisecond}, limits())
	nc := b.dialPickle(t)
	say(t, nc, frameOf("a", 1, 1))
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	b.s.wait(t, 1)
	if strings.Contains(b.log.String(), "lost") {
		t.Error(b.log)
	}
}

// TestAnnouncedFramesHoldNothing: many senders announce large frames, and the memory held follows what
// they sent.
func TestAnnouncedFramesHoldNothing(t *testing.T) {
	b := startPickle(t, newStore(), Options{}, limits())
	frame := frameOf("announced", 20_000, 1)
	if len(frame) < 700_000 || len(frame) > 1<<20 {
		t.Fatal(len(frame))
	}
	var conns []net.Conn
	for range 30 {
		nc := b.dialPickle(t)
		say(t, nc, frame[:4+minBuffer-1])
		conns = append(conns, nc)
	}
	b.want(t, b.metrics.pickle.transport.bytes, float64(30*(4+minBuffer-1)))
	b.want(t, b.metrics.pickleBytes, 0)
	for _, nc := range conns {
		say(t, nc, frame[4+minBuffer-1:4+minBuffer+1])
	}
	b.want(t, b.metrics.pickleBytes, 30*firstFrameBytes)
	for _, nc := range conns[1:] {
		nc.Close()
	}
	b.wantLost(t, cutOff, 29)
	b.want(t, b.metrics.pickleBytes, firstFrameBytes)
	say(t, conns[0], frame[4+minBuffer+1:])
	b.s.wait(t, 20_000)
	b.wantNothingHeld(t)
}

// TestFramesDoNotWaitForEachOther sends most of more frames than memory can hold, all at once. Each
// frame holds some memory and waits for more, yet all are stored.
func TestFramesDoNotWaitForEachOther(t *testing.T) {
	small := limits()
	small.MaxInflightBytes = 2 << 20 // frames of up to 128 KiB
	b := startPickle(t, newStore(), Options{}, small)
	const senders, points = 60, 2900
	var most float64
	var wg sync.WaitGroup
	for i := range senders {
		nc := b.dialPickle(t)
		frame := frameOf(fmt.Sprintf("s%d.metric", i), points, 1)
		if len(frame) < 100_000 || len(frame) > 128<<10 {
			t.Fatal(len(frame))
		}
		wg.Go(func() {
			for _, piece := range []string{frame[:70_000], frame[70_000 : len(frame)-1], frame[len(frame)-1:]} {
				if _, err := io.WriteString(nc, piece); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	eventually(t, func() bool {
		most = max(most, testutil.ToFloat64(b.metrics.pickleBytes))
		return b.s.stored() >= senders*points
	}, func() string { return fmt.Sprintf("%d rows", b.s.stored()) })
	wg.Wait()
	b.s.wait(t, senders*points)
	if limit := float64(small.MaxInflightBytes); most < limit/4 || most > limit*2 {
		t.Errorf("at most %v bytes were held, and the budget is %v", most, limit)
	}
	if len(b.lastResort) != 0 {
		t.Error("the last resort is not given back")
	}
	b.wantNothingHeld(t)
}

func TestFullDiskHoldsTheSenderOfPicklesBack(t *testing.T) {
	s := newStore()
	s.setRoom(fmt.Errorf("%w: disk full", model.ErrTransient))
	small := limits()
	small.MaxInflightBytes = 4 << 20
	b := startPickle(t, s, Options{}, small)
	nc := b.dialPickle(t)
	const frames, n = 200, 2000
	text := strings.Repeat(frameOf(strings.Repeat("node.", 17)+"leaf", n, 1), frames)
	sent := make(chan error)
	go func() {
		_, err := io.WriteString(nc, text)
		nc.Close()
		sent <- err
	}()
	select {
	case err := <-sent:
		t.Fatalf("%d bytes were taken without room for them: %v", len(text), err)
	case <-time.After(300 * time.Millisecond):
	}
	eventually(t, func() bool { return strings.Contains(b.log.String(), "disk full") }, b.log.String)
	if s.stored() != 0 {
		t.Fatalf("%d rows", s.stored())
	}
	s.setRoom(nil)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	s.wait(t, frames*n)
}

// TestPickleStream sends frames of all sizes in pieces that ignore frame boundaries, and expects every
// row in order.
func TestPickleStream(t *testing.T) {
	const rounds = 30
	b := startPickle(t, newStore(), Options{}, limits())
	sizes := []int{1, 0, 200, 5000, 3, 40, 700, 12_000, 200, 199}
	var wg sync.WaitGroup
	for g := range 4 {
		nc := b.dialPickle(t)
		wg.Go(func() {
			defer nc.Close()
			var text []byte
			for r := range rounds {
				text = append(text, frameOf(fmt.Sprintf("agent.%d.metric", g), sizes[(r+g)%len(sizes)], float64(r))...)
			}
			for n := 1; len(text) > 0; n = n*3%100_003 + 1 {
				n = min(n, len(text))
				if _, err := nc.Write(text[:n]); err != nil {
					t.Error(err)
					return
				}
				text = text[n:]
			}
		})
	}
	wg.Wait()
	total := 0
	for g := range 4 {
		for r := range rounds {
			total += sizes[(r+g)%len(sizes)]
		}
	}
	b.s.wait(t, total)
	for name, r := range b.s.Rows {
		if !slices.IsSortedFunc(r.Values, func(a, b uint64) int {
			return int(math.Float64frombits(a) - math.Float64frombits(b))
		}) {
			t.Fatalf("%s: not in order", name)
		}
	}
	b.want(t, b.metrics.connections, 0)
	b.want(t, b.metrics.buffers, 0)
	b.wantNothingHeld(t)
}

func TestCloseDrainsPickles(t *testing.T) {
	s := newStore()
	s.Gate = make(chan struct{})
	b := startPickle(t, s, Options{}, limits())
	nc := b.dialPickle(t)
	say(t, nc, frameOf("a", 5000, 1)+frameOf("b", 100, 1))
	b.want(t, b.metrics.pickle.transport.lines, 5100)
	say(t, nc, frameOf("half", 100, 1)[:100])
	closed := make(chan error)
	go func() { closed <- b.Close() }()
	select {
	case <-closed:
		t.Fatal("closed before the rows were durable")
	case <-time.After(400 * time.Millisecond):
	}
	close(s.Gate)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if got := s.stored(); got != 5100 {
		t.Fatalf("%d rows", got)
	}
	b.wantLost(t, stopped, 1)
}

// TestCloseGivesUpPickles closes while frames wait for memory and for the disk.
func TestCloseGivesUpPickles(t *testing.T) {
	s := newStore()
	s.Gate = make(chan struct{})
	small := limits()
	small.MaxInflightBytes = 2 << 20
	b := startPickle(t, s, Options{DrainTimeout: 300 * time.Millisecond}, small)
	frame := frameOf("a", 2500, 1)
	for range 20 {
		nc := b.dialPickle(t)
		go func() { _, _ = io.WriteString(nc, strings.Repeat(frame, 10)) }()
	}
	b.want(t, b.metrics.connections, 20)
	eventually(t, func() bool { return testutil.ToFloat64(b.metrics.pickle.transport.lines) > 2500 }, func() string { return "no frame was read" })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if testutil.ToFloat64(b.metrics.pickle.transport.dropped) == 0 || s.stored() != 0 {
		t.Fatalf("%v dropped, %d stored", testutil.ToFloat64(b.metrics.pickle.transport.dropped), s.stored())
	}
	b.wantNothingHeld(t)
}

func TestConnectionsOfEachDoorAreCountedAlone(t *testing.T) {
	b := startPickle(t, newStore(), Options{MaxConnections: 1}, limits())
	text, first := b.dial(t, "tcp"), b.dialPickle(t)
	b.want(t, b.metrics.connections, 2)
	second := b.dialPickle(t)
	if n, err := second.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("%d, %v", n, err)
	}
	b.want(t, b.metrics.refused, 1)
	say(t, text, "a 1 1700000000\n")
	say(t, first, frameOf("b", 1, 1))
	b.s.wait(t, 2)
}

func TestPicklesAlone(t *testing.T) {
	l, err := New(Options{PickleListen: "127.0.0.1:0", Sink: write.New(write.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- l.Serve() }()
	if l.Addr() != nil || l.PickleAddr() == nil {
		t.Errorf("%v, %v", l.Addr(), l.PickleAddr())
	}
	if _, err := New(Options{Listen: "127.0.0.1:0", PickleListen: l.PickleAddr().String(), Sink: l.o.Sink}); !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}
