package write

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Reasons for which samples or series of a request are dropped. They are the values of the label
// `reason` of shale_write_discarded_samples_total, shale_write_discarded_exemplars_total and
// shale_write_discarded_lines_total.
const (
	ReasonTooOld         = "too_old"
	ReasonTooNew         = "too_far_in_future"
	ReasonTimeRange      = "time_out_of_range"
	ReasonNaN            = "nan"
	ReasonBlacklisted    = "blacklisted"
	ReasonNotWhitelisted = "not_whitelisted"
	ReasonRuleFailed     = "rule_failed"
	ReasonNotForwarded   = "only_aggregated"
	ReasonRelayed        = "only_relayed"
	ReasonBadLine        = "bad_line"
	ReasonLabels         = "invalid_labels"
	ReasonDuplicateLabel = "duplicate_label_name"
	ReasonTooManyLabels  = "too_many_labels"
	ReasonNameTooLong    = "label_name_too_long"
	ReasonValueTooLong   = "label_value_too_long"
	ReasonLabelsTooLong  = "labels_too_long"
	ReasonOverload       = "overload"
	ReasonReference      = "invalid_reference"
	ReasonHistogram      = "invalid_histogram"
	ReasonTooManyBuckets = "too_many_buckets"
	ReasonExemplar       = "exemplar_labels_too_long"
	ReasonLineTooLong    = "line_too_long"
	ReasonMetadata       = "structured_metadata_invalid"
	ReasonMetadataLong   = "structured_metadata_too_large"
	ReasonMetadataMany   = "structured_metadata_too_many"
	ReasonTemporality    = "delta_temporality"
	ReasonMetric         = "invalid_metric"
	// Those of limits of a tenant. The sender may send the rows again, and then they count again.
	ReasonSampleRate   = "sample_rate"
	ReasonLineRate     = "line_rate"
	ReasonLineByteRate = "line_byte_rate"
	ReasonSeries       = "active_series"
	ReasonSeriesRate   = "new_series_rate"

	ReasonMetricSeries   = "metric_active_series"
	ReasonLabelSetSeries = "label_set_active_series"
)

// Counts counts rows by kind.
type Counts struct {
	// Samples are floats.
	Samples, Histograms, Exemplars, Lines int
	// LineBytes are the bytes of the lines, without their metadata.
	LineBytes int64
}

// Total returns the number of rows of all kinds.
func (c Counts) Total() int { return c.Samples + c.Histograms + c.Exemplars + c.Lines }

// Add adds the counts of o.
func (c *Counts) Add(o Counts) {
	c.Samples += o.Samples
	c.Histograms += o.Histograms
	c.Exemplars += o.Exemplars
	c.Lines += o.Lines
	c.LineBytes += o.LineBytes
}

// String returns the counts as text, for example "2 samples, 1 histogram".
func (c Counts) String() string {
	var parts []string
	count := func(n int, noun string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+noun)
		case n > 1 || noun == "sample" && c.Total() == 0:
			parts = append(parts, fmt.Sprintf("%d %ss", n, noun))
		}
	}
	count(c.Samples, "sample")
	count(c.Histograms, "histogram")
	count(c.Exemplars, "exemplar")
	count(c.Lines, "line")
	return strings.Join(parts, ", ")
}

// countRows counts the rows [from, to) of a column by kind.
func countRows(f model.Family, r *model.Rows, from, to int) (n Counts) {
	switch {
	case f == model.Exemplars:
		n.Exemplars = to - from
	case f == model.Text:
		n.Lines = to - from
		for i := from; i < to; i++ {
			length, _ := binary.Uvarint(r.Blob(i))
			n.LineBytes += int64(length)
		}
	case len(r.Kinds) == 0:
		n.Samples = to - from
	default:
		for _, k := range r.Kinds[from:to] {
			if k == model.KindHistogram {
				n.Histograms++
			} else {
				n.Samples++
			}
		}
	}
	return n
}

// countSeries counts the rows of series i by kind.
func countSeries(b *model.Batch, i int) (n Counts) {
	for _, f := range model.Families() {
		c := b.Columns(f)
		n.Add(countRows(f, &c.Rows, int(c.Begin(i)), int(c.End(i))))
	}
	return n
}

// countBatch counts the rows of a batch by kind.
func countBatch(b *model.Batch) (n Counts) {
	for _, f := range model.Families() {
		c := b.Columns(f)
		n.Add(countRows(f, &c.Rows, 0, c.Len()))
	}
	return n
}

// Result is the outcome of a push.
type Result struct {
	// Stored counts the durable rows of all kinds, and ByKind those of each kind.
	Stored   int
	ByKind   Counts
	Rejected Rejections
}

// Rejection counts the rows that were dropped for one reason and gives the first examples.
type Rejection struct {
	Reason string
	// At is the position in the request of the first of these rows: the number of log lines before it that
	// came into the batch, or for metrics the number of series.
	At int
	// Samples counts rows of all kinds, and ByKind those of each kind.
	Samples int
	ByKind  Counts
	// Examples has at most 3 texts of at most 500 bytes each.
	Examples []string
}

// maxExamples and maxExampleBytes bound the examples in a response.
const (
	maxExamples     = 3
	maxExampleBytes = 500
)

// Rejections has one Rejection per reason, in the order in which the reasons first occurred.
type Rejections []Rejection

// Add counts dropped rows whose position in the request does not matter.
func (r *Rejections) Add(reason string, n Counts, example func() string) {
	r.AddAt(0, reason, n, example)
}

// AddAt counts dropped rows, of which the first has the position [Rejection.At]. It calls example for the
// first few only.
func (r *Rejections) AddAt(at int, reason string, n Counts, example func() string) {
	rej := r.entry(at, reason)
	rej.Samples += n.Total()
	rej.ByKind.Add(n)
	if len(rej.Examples) < maxExamples {
		text := example()
		rej.Examples = append(rej.Examples, text[:min(len(text), maxExampleBytes)])
	}
}

// Merge adds the rejections of o. Of two reasons with the same position, the one in r stays first.
func (r *Rejections) Merge(o Rejections) {
	for i := range o {
		rej := r.entry(o[i].At, o[i].Reason)
		rej.Samples += o[i].Samples
		rej.ByKind.Add(o[i].ByKind)
		more := min(len(o[i].Examples), maxExamples-len(rej.Examples))
		rej.Examples = append(rej.Examples, o[i].Examples[:more]...)
	}
	slices.SortStableFunc(*r, func(a, b Rejection) int { return cmp.Compare(a.At, b.At) })
}

// entry returns the Rejection for a reason. at is the position of a row that was dropped for it.
func (r *Rejections) entry(at int, reason string) *Rejection {
	for i := range *r {
		if rej := &(*r)[i]; rej.Reason == reason {
			rej.At = min(rej.At, at)
			return rej
		}
	}
	*r = append(*r, Rejection{Reason: reason, At: at})
	return &(*r)[len(*r)-1]
}

// Counts returns the number of dropped rows for all reasons together.
func (r Rejections) Counts() (n Counts) {
	for i := range r {
		n.Add(r[i].ByKind)
	}
	return n
}
