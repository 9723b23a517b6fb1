package line

import (
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// number returns the value of a label as a number. It returns false for a line that lacks the label and so is
// not part of the sample. If the value is not a number, it notes an error.
func (r *Runner) number(label string, c syntax.Conversion) (float64, bool) {
	s, _ := r.labels.get(label)
	if s == "" {
		return 0, false
	}
	var v float64
	var err error
	switch c {
	case syntax.ConvertDuration, syntax.ConvertDurationSeconds:
		var d time.Duration
		d, err = time.ParseDuration(s)
		v = d.Seconds()
	case syntax.ConvertBytes:
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
