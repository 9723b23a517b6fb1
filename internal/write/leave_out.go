package write

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// leaveOut drops the rows that are too old or too far in the future and all rows of invalid series; an empty
// slice marks none. If every row is good, which is the usual case, it costs one pass over the times and
// changes nothing.
func (p *Path) leaveOut(b *model.Batch, invalid []bool, l *Limits, res *Result) {
	now := p.o.Now()
	lo, hi := int64(math.MinInt64), saturate(now, l.MaxFuture)
	if l.MaxAge > 0 {
		lo = now - int64(l.MaxAge)
	}
	if len(invalid) == 0 && within(b.Samples.Times, lo, hi) && within(b.Exemplars.Times, lo, hi) && within(b.Text.Times, lo, hi) {
		return
	}
	b.KeepRows(func(f model.Family, series, row int) bool {
		c := b.Columns(f)
		t := c.Times[row]
		switch {
		case len(invalid) > 0 && invalid[series]:
			return false
		case t < lo:
			res.Rejected.AddAt(position(f, series, row), ReasonTooOld, countRows(f, &c.Rows, row, row+1), func() string {
				if f == model.Text {
					return l.lineTooOld(describeStream(b, series), t, lo)
				}
				return fmt.Sprintf("%s at %s is older than %s", describeSeries(b, series), rfc3339(t), l.OldestAge())
			})
			return false
		case t > hi:
			res.Rejected.AddAt(position(f, series, row), ReasonTooNew, countRows(f, &c.Rows, row, row+1), func() string {
				if f == model.Text {
					return fmt.Sprintf("entry for stream '%s' has timestamp too new: %s", describeStream(b, series), seconds(t))
				}
				return fmt.Sprintf("%s at %s is further in the future than max-future (%s)", describeSeries(b, series), rfc3339(t), l.MaxFuture)
			})
			return false
		}
		return true
	})
}

// position returns [Rejection.At] of a row of a batch that has lost no row yet.
func position(f model.Family, series, row int) int {
	if f == model.Text {
		return row
	}
	return series
}

// lineTooOld explains that a line is too old. The text is Loki's, which knows no other setting than max-age.
func (l *Limits) lineTooOld(stream string, t, oldest int64) string {
	text := fmt.Sprintf("entry for stream '%s' has timestamp too old: %s, oldest acceptable timestamp is: %s", stream, seconds(t), seconds(oldest))
	if l.AgeSetting != "" {
		text += fmt.Sprintf(" (limit: %s)", l.AgeSetting)
	}
	return text
}

func within(times []int64, lo, hi int64) bool {
	for _, t := range times {
		if t < lo || t > hi {
			return false
		}
	}
	return true
}

func saturate(now int64, d time.Duration) int64 {
	if now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}

func rfc3339(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }

// seconds formats a time as Loki does in its errors about lines that are too old or too new.
func seconds(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339) }

// describeSeries formats the labels of a series for an error text.
func describeSeries(b *model.Batch, series int) string {
	var lb model.LabelsBuilder
	b.BuildLabels(series, &lb)
	return Describe(&lb)
}

// describeStream formats the labels of a stream for an error text.
func describeStream(b *model.Batch, series int) string {
	var lb model.LabelsBuilder
	b.BuildLabels(series, &lb)
	l, err := lb.Append(nil)
	if err != nil {
		return Describe(&lb)
	}
	return DescribeStream(l)
}

// DescribeStream formats the labels of a stream for an error text as Loki does. It cuts them so that an
// example has room for them and the reason.
func DescribeStream(l model.Labels) string {
	const most = maxExampleBytes - 150 // the rest is for the reason
	sb := []byte{'{'}
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		if len(sb) > 1 {
			sb = append(sb, ", "...)
		}
		if len(sb)+len(n)+len(v) > most {
			sb = append(sb, "..."...)
			break
		}
		if isBareName(n) {
			sb = append(sb, n...)
		} else {
			sb = strconv.AppendQuote(sb, string(n))
		}
		sb = append(sb, '=')
		sb = strconv.AppendQuote(sb, string(v))
	}
	return string(append(sb, '}'))
}

// isBareName reports whether a label name can be written without quotes.
func isBareName(name []byte) bool {
	for i, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0
}

// Describe formats labels for an error text. It cuts long labels, and the list so that an example has
// room for the reason.
func Describe(lb *model.LabelsBuilder) string {
	const most = maxExampleBytes / 2 // the other half is for the reason
	var sb bytes.Buffer
	sb.WriteByte('{')
	for i := range lb.Len() {
		if i > 0 {
			sb.WriteString(", ")
		}
		if sb.Len() > most {
			sb.WriteString("...")
			break
		}
		n, v := lb.At(i)
		fmt.Fprintf(&sb, "%.60q=%.60q", n, v)
	}
	sb.WriteByte('}')
	return sb.String()
}
