package worldtest

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Exemplars returns up to n normalised exemplars.
func Exemplars(r *rand.Rand, n int) model.Rows {
	var rows model.Rows
	at := 1700000000e9 + r.Int64N(1e9)
	for range n {
		e := model.Exemplar{Value: Value(r, r.IntN(9)), Labels: model.LabelsOf("trace_id", strconv.FormatUint(r.Uint64(), 16))}
		switch r.IntN(5) {
		case 0:
			e.Labels = nil
		case 1:
			e.Labels = model.LabelsOf("a", strconv.Itoa(r.IntN(3)), "b", strings.Repeat("b", r.IntN(300)))
		}
		rows.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		at += r.Int64N(3) * r.Int64N(1e9)
	}
	rows.NormalizeSet()
	return rows
}

// Exemplar returns one of a few exemplars, so that they meet.
func Exemplar(r Random, at int64) Row {
	e := model.Exemplar{Value: math.Float64bits(float64(r.IntN(3)))}
	if n := r.IntN(5); n > 0 {
		e.Labels = model.LabelsOf("trace_id", strconv.Itoa(n))
	}
	return ExemplarRow(at, &e)
}
