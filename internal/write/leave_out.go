package write

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// maxExamples and maxExampleBytes bound what an answer says of culprits.
const (
	maxExamples     = 3
	maxExampleBytes = 500
)

// reject counts samples; example is called for the first few culprits.
func (r *Result) reject(reason string, samples int, example func() string) {
	i := 0
	for i < len(r.Rejected) && r.Rejected[i].Reason != reason {
		i++
	}
	if i == len(r.Rejected) {
		r.Rejected = append(r.Rejected, Rejection{Reason: reason})
	}
	rej := &r.Rejected[i]
	rej.Samples += samples
	if len(rej.Examples) < maxExamples {
		text := example()
		rej.Examples = append(rej.Examples, text[:min(len(text), maxExampleBytes)])
	}
}

// leaveOut drops the rows that are too old or too far in the future, and the series that are dead (which may be empty:
// none). It costs one pass over the times and changes nothing in the usual case that all are good.
func (p *Path) leaveOut(b *model.Batch, dead []bool, res *Result) {
	now := p.o.Now()
	lo, hi := int64(math.MinInt64), saturate(now, p.o.Limits.MaxFuture)
	if p.o.Limits.MaxAge > 0 {
		lo = now - int64(p.o.Limits.MaxAge)
	}
	times, first := b.Samples.Times, 0
	for first < len(times) && times[first] >= lo && times[first] <= hi {
		first++
	}
	if first == len(times) && len(dead) == 0 {
		return
	}
	b.KeepRows(func(f model.Family, series, row int) bool {
		t := b.Columns(f).Times[row]
		switch {
		case len(dead) > 0 && dead[series]:
			return false
		case t < lo:
			res.reject(ReasonTooOld, 1, func() string {
				return fmt.Sprintf("%s at %s is older than %s", culprit(b, series), rfc3339(t), p.o.Limits.MaxAge)
			})
			return false
		case t > hi:
			res.reject(ReasonTooNew, 1, func() string {
				return fmt.Sprintf("%s at %s is more than %s in the future", culprit(b, series), rfc3339(t), p.o.Limits.MaxFuture)
			})
			return false
		}
		return true
	})
}

func saturate(now int64, d time.Duration) int64 {
	if now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}

func rfc3339(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }

// culprit writes the labels of a series for a message.
func culprit(b *model.Batch, series int) string {
	var lb model.LabelsBuilder
	b.BuildLabels(series, &lb)
	return describe(&lb)
}

func describe(lb *model.LabelsBuilder) string {
	var sb bytes.Buffer
	sb.WriteByte('{')
	for i := range lb.Len() {
		if i > 0 {
			sb.WriteString(", ")
		}
		n, v := lb.At(i)
		fmt.Fprintf(&sb, "%.100q=%.100q", n, v)
		if sb.Len() > maxExampleBytes {
			break
		}
	}
	sb.WriteByte('}')
	return sb.String()
}
