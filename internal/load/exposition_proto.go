package load

import (
	"encoding/binary"
	"math"
)

// protobuf appends a metric as io.prometheus.client.MetricFamily behind its length. The length is not known before
// everything in it is; so it is all made twice rather than kept.
func (e *exposition) protobuf() error {
	head := appendField(nil, tag(1, sized), e.name)
	head = appendField(head, tag(2, sized), e.fleet.appendHelp(nil, e.point.metric))
	head = appendVarint(head, 3, e.protoType())
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
	e.buf = binary.AppendUvarint(e.buf, uint64(len(head)+size))
	e.buf = append(e.buf, head...)
	return e.all(e.protoMetric)
}

func (e *exposition) protoType() uint64 {
	return map[int]uint64{typeCounter: 0, typeGauge: 1, typeHistogram: 4, typeGaugeHistogram: 5}[e.fleet.metricType(e.point.metric)]
}

// protoMetric appends the Metric of a series with its tag and length.
func (e *exposition) protoMetric() {
	e.samples++
	field, bits := 2, uint64(0)
	e.value = e.value[:0]
	switch {
	case e.fleet.Value.Histogram():
		field = 7
		e.protoHistogram()
	case e.fleet.Value == Counter:
		field = 3
		fallthrough
	default:
		bits = e.point.bits(e.fleet.Value)
		e.value = appendFixed(e.value, 1, bits)
		if field == 3 {
			e.protoExemplar(2)
			e.protoStart(3)
		}
	}
	size := len(e.series.bytes) + 1 + varintLen(uint64(len(e.value))) + len(e.value)
	e.buf = binary.AppendUvarint(append(e.buf, tag(4, sized)), uint64(size))
	e.buf = append(e.buf, e.series.bytes...)
	e.buf = appendField(e.buf, tag(field, sized), e.value)
}

// protoHistogram makes the body of a Histogram: a native one, or a classic one with the bounds that are its own, which
// a Prometheus can be told to turn into the native form.
func (e *exposition) protoHistogram() {
	n := &e.native
	n.fill(e.fleet.Value, e.fleet.gaugeHistogram(e.point.metric), &e.now.instant, e.point.identity)
	if n.float {
		e.value = appendFloat(e.value, 4, n.value(n.count))
	} else {
		e.value = appendVarint(e.value, 1, n.count)
	}
	e.value = appendFloat(e.value, 2, n.sum)
	if len(n.custom) > 0 {
		e.protoClassic()
	} else {
		e.value = appendVarint(e.value, 5, zigzag(int64(n.schema)))
		e.value = appendFloat(e.value, 6, n.zeroThreshold)
		if n.float {
			e.value = appendFloat(e.value, 8, n.value(n.zeroCount))
		} else {
			e.value = appendVarint(e.value, 7, n.zeroCount)
		}
		e.value = appendBuckets(e.value, n, &n.negative, 9)
		e.value = appendBuckets(e.value, n, &n.positive, 12)
	}
	e.protoStart(15)
	if len(n.custom) == 0 {
		e.protoLaterExemplar()
	}
}

// protoClassic appends the buckets of a classic histogram.
func (e *exposition) protoClassic() {
	n, sum := &e.native, uint64(0)
	classic := n.classic()
	for i, bound := range n.custom {
		sum += classic[i]
		e.value = append(e.value, tag(3, sized), byte(1+varintLen(sum)+9))
		e.value = appendVarint(e.value, 1, sum)
		e.value = appendFloat(e.value, 2, bound)
	}
}

// classic returns the counts of the buckets below each bound and, last, above all of them.
func (n *native) classic() (counts [len(customBounds) + 1]uint64) {
	if len(n.custom) == 0 {
		return counts
	}
	index, i := 0, 0
	for _, s := range n.positive.spans {
		index += int(s.offset)
		for range s.length {
			counts[index] = n.positive.counts[i]
			index, i = index+1, i+1
		}
	}
	return counts
}

// protoExemplar appends the exemplar of a series, if it has one.
func (e *exposition) protoExemplar(field int) {
	if !e.fleet.exemplar(&e.point, &e.trace) {
		return
	}
	e.value = append(e.value, tag(field, sized))
	e.appendExemplar()
}

// protoLaterExemplar is protoExemplar for the field 16 of a histogram, whose tag takes two bytes.
func (e *exposition) protoLaterExemplar() {
	if !e.fleet.exemplar(&e.point, &e.trace) {
		return
	}
	e.value = append(e.value, 0x82, 0x01)
	e.appendExemplar()
}

func (e *exposition) appendExemplar() {
	const pair = 2 + len(traceLabel) + 2 + traceBytes
	at := e.exemplarMs()
	e.value = append(e.value, byte(2+pair+9+2+stampLen(at)), tag(1, sized), byte(pair))
	e.value = appendField(e.value, tag(1, sized), []byte(traceLabel))
	e.value = appendField(e.value, tag(2, sized), e.trace[:])
	e.value = appendFloat(e.value, 2, math.Float64frombits(e.point.bits(e.fleet.Value)))
	e.value = appendStamp(append(e.value, tag(3, sized)), at)
}

// protoStart appends since when a series counts.
func (e *exposition) protoStart(field int) {
	if start := e.now.startMs(); e.fleet.StartTimes && start > 0 && e.fleet.Value.cumulative() {
		e.value = appendStamp(append(e.value, tag(field, sized)), start)
	}
}

// appendStamp appends a google.protobuf.Timestamp behind its length.
func appendStamp(dst []byte, ms int64) []byte {
	dst = appendVarint(append(dst, byte(stampLen(ms))), 1, uint64(ms/1000))
	return appendVarint(dst, 2, uint64(ms%1000*1e6))
}

func stampLen(ms int64) int {
	return 1 + varintLen(uint64(ms/1000)) + 1 + varintLen(uint64(ms%1000*1e6))
}
