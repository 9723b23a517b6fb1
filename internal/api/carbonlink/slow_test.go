package carbonlink

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// pools are the memory of queries and that of bytes on their way.
type pools struct{ queries, transit model.QueryPool }

func (p *pools) use(o *Options) {
	o.Quota = func() *model.Quota { return &model.Quota{Pool: &p.queries} }
	o.Transit = func() *model.Quota { return &model.Quota{Pool: &p.transit} }
}

// await waits until something is true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// begin sends the first n bytes of a request of 1 MiB.
func begin(t *testing.T, nc net.Conn, n int) {
	t.Helper()
	if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, maxRequest), make([]byte, n)...)); err != nil {
		t.Fatal(err)
	}
}

// TestSlowRequestsHoldNoMemoryOfQueries: requests that have come in part are not charged to queries.
func TestSlowRequestsHoldNoMemoryOfQueries(t *testing.T) {
	var p pools
	p.queries.MaxBytes, p.transit.MaxBytes = 64<<20, 64<<20
	s := listen(t, p.use)
	const conns, sent = 48, 512<<10 + 1
	for range conns {
		begin(t, dial(t, s), sent)
	}
	held := func() int64 { return p.queries.Used() + p.transit.Used() }
	await(t, "the requests are not charged", func() bool { return held() >= conns*maxRequest })
	if n := p.queries.Used(); n != 0 {
		t.Errorf("slow requests hold %d bytes of the memory of queries", n)
	}
}

// TestSilentClientsAreLeft: a request that stops in its middle ends with the connection, and frees its
// memory.
func TestSilentClientsAreLeft(t *testing.T) {
	var p pools
	p.queries.MaxBytes, p.transit.MaxBytes = 64<<20, 64<<20
	s := listen(t, p.use, func(o *Options) { o.Stall = 50 * time.Millisecond })
	nc, idle := dial(t, s), dial(t, s)
	begin(t, nc, 10_000)
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("the connection has an answer")
	}
	await(t, "the request is still held", func() bool { return p.queries.Used()+p.transit.Used() == 0 })
	ask(t, idle, []byte("N.")) // a connection between requests may be silent
}

// longAnswer asks for an answer of 30 MB, more than sockets buffer.
func longAnswer() []byte {
	long := strings.Repeat("x", 500_000)
	request := []byte("}X\x04\x00\x00\x00typeX\x10\x00\x00\x00cache-query-bulksX\x07\x00\x00\x00metrics](X")
	request = append(binary.LittleEndian.AppendUint32(request, uint32(len(long))), long...)
	request = append(request, "q\x00"...)
	request = append(request, strings.Repeat("h\x00", 60)...)
	return append(request, "es."...)
}

// TestUnreadAnswersHoldNoMemoryOfQueries: an answer that a client does not read is not charged to queries,
// and dropped after a while. Without other memory for it, it is charged to queries for as long.
func TestUnreadAnswersHoldNoMemoryOfQueries(t *testing.T) {
	request := longAnswer()
	for what, transit := range map[string]int64{"enough": 128 << 20, "too little": 4 << 20} {
		var p pools
		p.queries.MaxBytes, p.transit.MaxBytes = 256<<20, transit
		s := listen(t, p.use, func(o *Options) { o.Stall = time.Second })
		nc := dial(t, s)
		if n := len(ask(t, nc, request)); n < 30_000_000 {
			t.Errorf("%s: an answer of %d bytes", what, n)
		}
		if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
			t.Fatal(err)
		}
		if what == "enough" {
			await(t, "the answer is held by queries", func() bool { return p.queries.Used() == 0 && p.transit.Used() >= 30_000_000 })
		} else {
			await(t, "the answer is not charged", func() bool { return p.queries.Used() >= 30_000_000 })
		}
		await(t, what+": the answer is held for ever", func() bool { return p.queries.Used()+p.transit.Used() == 0 })
	}
}
