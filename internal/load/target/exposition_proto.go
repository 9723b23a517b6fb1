package target

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
)

// protobuf appends a metric as io.prometheus.client.MetricFamily, after its length. The length depends on the
// whole message, so the message is made twice rather than kept.
func (e *exposition) protobuf() error {
	head := wire.AppendField(nil, 1, e.name)
	head = wire.AppendField(head, 2, e.fleet.AppendHelp(nil, e.point.Metric))
	head = wire.AppendVarint(head, 3, e.protoType())
	size, before, samples := 0, len(e.buf), e.samples
	err := e.each(func() error {
		e.protoMetric()
		size += len(e.buf) - before
		e.buf = e.buf[:before]
		return nil
	})
	if err != nil {
		return err
	}
	e.samples = samples
	e.buf = protowire.AppendVarint(e.buf, uint64(len(head)+size))
	e.buf = append(e.buf, head...)
	return e.all(e.protoMetric)
}

func (e *exposition) protoType() uint64 {
	return map[int]uint64{fleet.TypeCounter: 0, fleet.TypeGauge: 1, fleet.TypeHistogram: 4, fleet.TypeGaugeHistogram: 5}[e.fleet.MetricType(e.point.Metric)]
}

// protoMetric appends the Metric of a series with its tag and length.
func (e *exposition) protoMetric() {
	e.samples++
	field, bits := protowire.Number(2), uint64(0)
	e.value = e.value[:0]
	switch {
	case e.fleet.Value.Histogram():
		field = 7
		e.protoHistogram()
	case e.fleet.Value == values.Counter:
		field = 3
		fallthrough
	default:
		bits = e.point.Bits(e.fleet.Value)
		e.value = wire.AppendFixed(e.value, 1, bits)
		if field == 3 {
			e.protoExemplar(2)
			e.protoStart(3)
		}
	}
	size := len(e.series.bytes) + 1 + protowire.SizeVarint(uint64(len(e.value))) + len(e.value)
	e.buf = protowire.AppendVarint(append(e.buf, wire.LenTag(4)), uint64(size))
	e.buf = append(e.buf, e.series.bytes...)
	e.buf = wire.AppendField(e.buf, field, e.value)
}

// protoHistogram makes the body of a Histogram: a native one, or a classic one with custom bounds, which a
// Prometheus can be told to convert to the native form.
func (e *exposition) protoHistogram() {
	n := &e.native
	n.Fill(e.fleet.Value, e.fleet.GaugeHistogram(e.point.Metric), &e.now.Instant, e.point.Identity)
	if n.Float {
		e.value = wire.AppendFloat(e.value, 4, n.Value(n.Count))
	} else {
		e.value = wire.AppendVarint(e.value, 1, n.Count)
	}
	e.value = wire.AppendFloat(e.value, 2, n.Sum)
	if len(n.Custom) > 0 {
		e.protoClassic()
	} else {
		e.value = wire.AppendVarint(e.value, 5, protowire.EncodeZigZag(int64(n.Schema)))
		e.value = wire.AppendFloat(e.value, 6, n.ZeroThreshold)
		if n.Float {
			e.value = wire.AppendFloat(e.value, 8, n.Value(n.ZeroCount))
		} else {
			e.value = wire.AppendVarint(e.value, 7, n.ZeroCount)
		}
		e.value = wire.AppendBuckets(e.value, n, &n.Negative, 9)
		e.value = wire.AppendBuckets(e.value, n, &n.Positive, 12)
	}
	e.protoStart(15)
	if len(n.Custom) == 0 {
		e.protoLaterExemplar()
	}
}

// protoClassic appends the buckets of a classic histogram.
func (e *exposition) protoClassic() {
	n, sum := &e.native, uint64(0)
	classic := n.Classic()
	for i, bound := range n.Custom {
		sum += classic[i]
		e.value = append(e.value, wire.LenTag(3), byte(1+protowire.SizeVarint(sum)+9))
		e.value = wire.AppendVarint(e.value, 1, sum)
		e.value = wire.AppendFloat(e.value, 2, bound)
	}
}

// protoExemplar appends the exemplar of a series, if it has one.
func (e *exposition) protoExemplar(field protowire.Number) {
	if !e.fleet.Exemplar(&e.point, &e.trace) {
		return
	}
	e.value = append(e.value, wire.LenTag(field))
	e.appendExemplar()
}

// protoLaterExemplar is protoExemplar for the field 16 of a histogram, whose tag takes two bytes.
func (e *exposition) protoLaterExemplar() {
	if !e.fleet.Exemplar(&e.point, &e.trace) {
		return
	}
	e.value = protowire.AppendTag(e.value, 16, protowire.BytesType)
	e.appendExemplar()
}

func (e *exposition) appendExemplar() {
	const pair = 2 + len(fleet.TraceLabel) + 2 + fleet.TraceBytes
	at := e.exemplarMs()
	e.value = append(e.value, byte(2+pair+9+2+stampLen(at)), wire.LenTag(1), byte(pair))
	e.value = wire.AppendField(e.value, 1, []byte(fleet.TraceLabel))
	e.value = wire.AppendField(e.value, 2, e.trace[:])
	e.value = wire.AppendFloat(e.value, 2, math.Float64frombits(e.point.Bits(e.fleet.Value)))
	e.value = appendStamp(append(e.value, wire.LenTag(3)), at)
}

// protoStart appends the start time of a series.
func (e *exposition) protoStart(field protowire.Number) {
	if start := e.now.StartMs(); e.fleet.StartTimes && start > 0 && e.fleet.Value.Cumulative() {
		e.value = appendStamp(append(e.value, wire.LenTag(field)), start)
	}
}

// appendStamp appends a google.protobuf.Timestamp after its length.
func appendStamp(dst []byte, ms int64) []byte {
	dst = wire.AppendVarint(append(dst, byte(stampLen(ms))), 1, uint64(ms/1000))
	return wire.AppendVarint(dst, 2, uint64(ms%1000*1e6))
}

func stampLen(ms int64) int {
	return 1 + protowire.SizeVarint(uint64(ms/1000)) + 1 + protowire.SizeVarint(uint64(ms%1000*1e6))
}
