package promwrite

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// heavyV1 are bodies of version 1 that take much memory for their size.
func heavyV1() map[string]string {
	named, sample := label("__name__", "n"), msg(2)
	good := msg(1, named, sample) // so that there is a batch to measure
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	exemplar := msg(3, msg(1, msg(1, "a"), msg(2, "b")))
	return map[string]string{
		"samples of one series": msg(1, named, strings.Repeat(sample, 1_000_000)),
		"series":                many(200_000, func(i int) string { return msg(1, named, label("i", fmt.Sprint(i)), sample) }),
		"labels out of order":   many(200_000, func(i int) string { return msg(1, label("i", fmt.Sprint(i)), named, sample) }),
		"labels of one series":  msg(1, named, many(300_000, func(i int) string { return label(fmt.Sprint(i), "v") }), sample) + good,
		"labels of one series, out of order": msg(1, many(300_000, func(i int) string { return label(fmt.Sprint(300_000-i), "v") }),
			named, sample) + good,
		"exemplars":             msg(1, named, strings.Repeat(exemplar, 200_000)),
		"labels of an exemplar": msg(1, named, sample, msg(3, strings.Repeat(msg(1, msg(1, "a"), msg(2, "b")), 300_000))),
		"metadata":              msg(1, named, sample) + strings.Repeat(msg(3, msg(2, "f")), 500_000),
		"histograms":            msg(1, named, strings.Repeat(msg(4, num(1, 0)), 300_000)),
		"buckets":               msg(1, named, strings.Repeat(wideHistogram(), 500)),
	}
}

// wideHistogram is a histogram with 1,000 buckets of a byte each.
func wideHistogram() string {
	return msg(4, num(1, 1000), msg(11, num(1, 0), num(2, 1000)), msg(12, num2(2)+strings.Repeat("\x00", 999)))
}

// num2 is a varint without a tag.
func num2(v uint64) string { return string(protowire.AppendVarint(nil, v)) }

// heavyV2 are bodies of version 2 that take much memory for their size.
func heavyV2() map[string]string {
	symbols := msg(4) + msg(4, "__name__") + msg(4, "n") + msg(4, "i")
	refs := func(pairs ...uint64) string {
		all := ""
		for _, r := range append([]uint64{1, 2}, pairs...) {
			all += num2(r)
		}
		return msg(1, all)
	}
	sample := msg(2)
	var series, values, starts strings.Builder
	for i := range 200_000 {
		values.WriteString(msg(4, fmt.Sprint(i)))
		series.WriteString(msg(5, refs(3, uint64(4+i)), sample))
		starts.WriteString(msg(5, refs(3, uint64(4+i)), msg(2, num(3, 1)), msg(5, num(1, 1), num(3, uint64(4+i)))))
	}
	return map[string]string{
		"samples of one series":             symbols + msg(5, refs(), strings.Repeat(sample, 1_000_000)),
		"series":                            symbols + values.String() + series.String(),
		"series with starts and metadata":   symbols + values.String() + starts.String(),
		"symbols":                           symbols + strings.Repeat(msg(4), 1_000_000) + msg(5, refs(), sample),
		"references":                        symbols + msg(5, refs()+msg(1, strings.Repeat("\x03\x00", maxRefs/2-4)), sample),
		"references in pieces":              symbols + msg(5, refs()+strings.Repeat(num(1, 3)+num(1, 0), maxRefs/2-4), sample),
		"references that are out of order":  symbols + msg(5, msg(1, strings.Repeat("\x03\x00", maxRefs/2-4))+refs(), sample),
		"references of exemplars":           symbols + strings.Repeat(msg(5, refs(), msg(4, msg(1, strings.Repeat("\x03\x00", 100_000)))), 10) + msg(5, refs(), sample),
		"references of an exemplar":         symbols + msg(5, refs(), sample, msg(4, msg(1, strings.Repeat("\x03\x02", 130_000)))),
		"many series of many empty labels":  symbols + strings.Repeat(msg(5, refs()+msg(1, strings.Repeat("\x03\x00", 10_000)), sample), 200),
		"symbols that are long, many times": symbols + msg(4, strings.Repeat("x", 4000)) + strings.Repeat(msg(5, refs(3, 4), sample), 2000),
	}
}

// TestMemoryIsReserved: a request has reserved what it holds, whatever is in its body.
func TestMemoryIsReserved(t *testing.T) {
	alloctest.Counts(t)
	limits := testLimits()
	limits.MaxInflightBytes, limits.MaxBodyBytes, limits.MaxDecodedBytes, limits.MaxFuture = 1<<30, 64<<20, 64<<20, time.Hour
	for v, bodies := range map[version]map[string]string{v1: heavyV1(), v2: heavyV2()} {
		for name, raw := range bodies {
			m := writetest.NewMeter()
			h := New(write.New(write.Options{
				Seed: seed, Head: m, Journal: m, Limits: limits, Registerer: m.Registry, Now: func() int64 { return nowMs * 1_000_000 },
			}), nil)
			body, headers := snappy.Encode(nil, []byte(raw)), []string(nil)
			if v == v2 {
				headers = []string{"Content-Type", typeV2}
			}
			use := m.Of(func() {
				if w := send(h, body, headers...); w.Code != http.StatusNoContent && w.Code != http.StatusBadRequest {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
			})
			use.Check(t, v.String()+", "+name, writetest.Garbage)
		}
	}
}
