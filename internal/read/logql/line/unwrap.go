package line

import (
	"strconv"
	"time"
)

// Conversion is how the value of a label becomes a number.
type Conversion uint8

// The conversions of unwrap: a plain number, a duration in seconds, and a size in bytes.
const (
	ConvertNumber Conversion = iota
	ConvertDuration
	ConvertBytes
)

// Number returns the value of a label as a number. It is called after Process has filled in a result and
// before the next line. It returns false for a line that lacks the label and so is not part of the sample. If
// the value is not a number, it sets the labels of errors, which Result then returns.
func (r *Runner) Number(label string, c Conversion) (float64, bool) {
	s, _ := r.labels.get(label)
	if s == "" {
		return 0, false
	}
	var v float64
	var err error
	switch c {
	case ConvertDuration:
		var d time.Duration
		d, err = time.ParseDuration(s)
		v = d.Seconds()
	case ConvertBytes:
		var n uint64
		n, err = parseBytes(s)
		v = float64(n)
	default:
		v, err = strconv.ParseFloat(s, 64)
	}
	if err != nil {
		r.labels.fail(errSampleExtraction, err.Error())
	}
	return v, true
}

// Result fills in the labels again, after Number.
func (r *Runner) Result(out *Result) { r.result(out) }
