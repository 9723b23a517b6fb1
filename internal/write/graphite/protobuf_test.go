package graphite

import (
	"fmt"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
	"google.golang.org/protobuf/encoding/protowire"
)

// metricOf encodes a metric of carbon's protobuf protocol, with its name before or after its points.
func metricOf(name string, nameLast bool, points ...[2]float64) []byte {
	var m []byte
	write := func() { m = protowire.AppendString(protowire.AppendTag(m, 1, protowire.BytesType), name) }
	if !nameLast {
		write()
	}
	for _, p := range points {
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(p[0]))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(p[1]))
		m = protowire.AppendBytes(protowire.AppendTag(m, 2, protowire.BytesType), b)
	}
	if nameLast {
		write()
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), m)
}

func (b *bench) dialTo(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func TestProtobufsAreStored(t *testing.T) {
	b := start(t, newStore(), Options{ProtobufListen: "127.0.0.1:0"}, limits())
	nc := b.dialTo(t, b.ProtobufAddr())
	payload := metricOf("a.b", false, [2]float64{1_700_000_000, 1.5}, [2]float64{1_700_000_060, -7}, [2]float64{1_700_000_120, math.NaN()})
	payload = append(payload, metricOf("a.c;dc=x", true, [2]float64{1_700_000_000, 2})...)
	payload = append(payload, metricOf("", false, [2]float64{1_700_000_000, 2})...)
	payload = append(payload, metricOf("none", false)...)
	payload = protowire.AppendVarint(protowire.AppendTag(payload, 9, protowire.VarintType), 1) // a later field
	say(t, nc, framed([]byte("\x0a\x05broken"))+framed(payload))
	b.s.wait(t, 3)
	b.want(t, b.metrics.protobuf.transport.received, 3)
	b.want(t, b.metrics.protobuf.transport.bad, 1)
	b.want(t, b.metrics.protobuf.received, 2)
	b.want(t, b.metrics.protobuf.lost.WithLabelValues(undecodable), 1)
	b.wantDiscarded(t, map[string]float64{"bad_item": 1, "nan": 1})
	r := b.s.Rows[`anonymous{__name__="a.b"}`]
	if r.Len() != 2 || r.Values[0] != math.Float64bits(1.5) || r.Values[1] != math.Float64bits(-7) || r.Times[1] != 1_700_000_060_000_000_000 {
		t.Errorf("got %+v", r)
	}
	if b.s.Rows[`anonymous{__name__="a.c", dc="x"}`] == nil {
		t.Errorf("got %v", b.s.Rows)
	}
	if log := b.log.String(); !strings.Contains(log, "protobuf message lost: undecodable") {
		t.Error(log)
	}
}

// A frame of more points than a slice is delivered whole.
func TestLargeProtobuf(t *testing.T) {
	b := start(t, newStore(), Options{ProtobufListen: "127.0.0.1:0"}, limits())
	var payload []byte
	for i := range 3 * slicePoints {
		payload = append(payload, metricOf(fmt.Sprintf("a.%d", i), i%2 == 0, [2]float64{1_700_000_000, float64(i)})...)
	}
	say(t, b.dialTo(t, b.ProtobufAddr()), framed(payload))
	b.s.wait(t, 3*slicePoints)
}

// With a proxy in front the log has the address of the sender, in both versions. Other senders need no
// header.
func TestProxyProtocol(t *testing.T) {
	b := start(t, newStore(), Options{Listen: "127.0.0.1:0", PickleListen: "127.0.0.1:0", ProtobufListen: "127.0.0.1:0", ProxyProtocol: true}, limits())
	for version, to := range map[byte]net.Addr{1: b.Addr(), 2: b.PickleAddr()} {
		nc := b.dialTo(t, to)
		from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, version), Port: 4321}
		h := proxyproto.HeaderProxyFromAddrs(version, from, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 100), Port: 2003})
		if _, err := h.WriteTo(nc); err != nil {
			t.Fatal(err)
		}
		body := "bad\na.b 1 1700000000\n"
		if version == 2 {
			body = framed([]byte("x")) + frameOf("p", 1, 1)
		}
		say(t, nc, body)
	}
	b.s.wait(t, 2)
	nc := b.dialTo(t, b.ProtobufAddr())
	say(t, nc, framed(metricOf("a.c", false, [2]float64{1_700_000_000, 1})))
	if n, err := nc.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes of a connection without a header", n)
	}
	for _, peer := range []string{"192.0.2.1:4321", "192.0.2.2:4321"} {
		eventually(t, func() bool { return strings.Contains(b.log.String(), peer) }, func() string { return "no " + peer + " in " + b.log.String() })
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add(metricOf("a.b", false, [2]float64{1_700_000_000, 1}))
	f.Add(metricOf("a.b", true, [2]float64{1, 1}, [2]float64{2, 2}))
	f.Add([]byte("\x0a\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := walk{b: b}
		for n := 0; ; n++ {
			_, _, ok, err := w.next()
			if err != nil || !ok {
				return
			}
			if n > len(b) {
				t.Fatal("more points than bytes")
			}
		}
	})
}
