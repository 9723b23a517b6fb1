package sample

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/logql/window"
)

// evaluation is one evaluation of a program: the sink of its lines.
type evaluation struct {
	program *Program
	cells   *window.Cells
	steps   vector.Steps
	quota   *model.Quota
	tenants []string // nil: labels do not say whose a line is
	seed    maphash.Seed

	// bound is the end of the window of the first failed line that is known: later lines do not change the
	// error.
	bound atomic.Int64

	mu      sync.Mutex
	workers []*worker
}

func newEvaluation(p *Program, quota *model.Quota, steps vector.Steps, tenants []string) *evaluation {
	r := p.expr.Range
	e := &evaluation{
		program: p, quota: quota, steps: steps, seed: maphash.MakeSeed(),
		cells: window.NewCells(steps.Start, steps.Step, steps.Count, int64(r.Range), int64(r.Offset)),
	}
	if len(tenants) > 1 {
		e.tenants = tenants
	}
	e.bound.Store(math.MaxInt64)
	return e
}

// divide tells sources where cells end, if chunks within a cell are counted without their lines.
func (e *evaluation) divide(x *selection.Execution) {
	if !x.Program.Whole || x.Program.Filter != nil {
		return
	}
	r := e.program.expr.Range
	op := e.program.expr.Op
	c := &model.TextCells{Phase: e.steps.Start - int64(r.Offset), Bytes: op == syntax.BytesOverTime || op == syntax.BytesRate}
	if e.steps.Count > 1 {
		c.Step = divisor(e.steps.Step, int64(r.Range))
	}
	c.Labels, c.Grouped = e.program.pipeline.CountedLabels()
	for i := range x.Requests {
		x.Requests[i].Cells = c
	}
}

// divisor returns the greatest common divisor of two positive numbers.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Bound returns the last time at which a line can change the result.
func (e *evaluation) Bound() int64 { return e.bound.Load() }

// Full returns false: all lines of the range count.
func (e *evaluation) Full() bool { return false }

// Limit returns 0: all lines count.
func (e *evaluation) Limit() int { return 0 }

// NewWorker returns a part of the evaluation for one goroutine.
func (e *evaluation) NewWorker() selection.Worker {
	w := &worker{evaluation: e, cursor: e.cells.NewCursor(), runner: e.program.pipeline.Runner()}
	w.take = w.charge
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers = append(e.workers, w)
	return w
}

// failed is a line with an error: the first step that has it, and its labels.
type failed struct {
	step   int
	labels model.Labels // nil: there is none
	some   bool
}

// note keeps the earlier of two failed lines.
func (f *failed) note(step int, labels model.Labels) bool {
	if f.some && (step > f.step || step == f.step && vector.CompareLabels(labels, f.labels) >= 0) {
		return false
	}
	*f = failed{step, model.Labels(string(labels)), true}
	return true
}

// fail notes a failed line, whose window ends the scan.
func (e *evaluation) fail(f *failed, cell int32, labels model.Labels) {
	step := e.cells.FirstStep(cell)
	if !f.note(step, labels) {
		return
	}
	for end := e.cells.End(step); ; {
		old := e.bound.Load()
		if end >= old || e.bound.CompareAndSwap(old, end) {
			return
		}
	}
}

// pipelineError is the error of a failed line, in Loki's words.
type pipelineError struct{ labels model.Labels }

func (e *pipelineError) Error() string {
	kind := e.labels.Get(line.ErrorLabel)
	return fmt.Sprintf("pipeline error: '%s' for series: '%s'.\n"+
		"Use a label filter to intentionally skip this error. (e.g | __error__!=\"%s\").\n"+
		"To skip all potential errors you can match empty errors.(e.g __error__=\"\")\n"+
		"The label filter can also be specified after unwrap. (e.g | unwrap latency | __error__=\"\" )\n",
		kind, e.labels, kind)
}

func (e *pipelineError) Unwrap() error { return model.ErrInvalid }

// join merges the series of all workers into those of the first, with what they have charged, and returns
// them, or the error of the earliest failed line.
func (e *evaluation) join(ctx context.Context) ([]*series, error) {
	var first failed
	for _, w := range e.workers {
		if w.failed.some {
			first.note(w.failed.step, w.failed.labels)
		}
	}
	if first.some {
		return nil, &pipelineError{first.labels}
	}
	if len(e.workers) == 0 {
		return nil, nil
	}
	into := e.workers[0]
	for _, w := range e.workers[1:] {
		for _, s := range w.table.take() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			own := into.table.find(s.hash, s.labels)
			bytes := s.bytes()
			if own == nil {
				into.table.insert(s)
				into.charged += bytes
				w.charged -= bytes
				continue
			}
			if err := own.window.Merge(s.window, into.take); err != nil {
				return nil, err
			}
			_ = w.charge(-bytes) // giving back does not fail
		}
	}
	return into.table.take(), nil
}

// release gives the memory of the evaluation back.
func (e *evaluation) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.workers {
		_ = e.quota.TakeBytes(-w.charged) // giving back does not fail
		w.charged, w.room, w.table = 0, 0, table{}
	}
}

// each hands over the labels and values of each series, and gives the series up then.
func (e *evaluation) each(ctx context.Context, all []*series, visit func(labels model.Labels, values func(window.Result)) error) error {
	for i, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(s.labels, s.window.Values); err != nil {
			return err
		}
		all[i] = nil
		_ = e.workers[0].charge(-s.bytes()) // giving back does not fail
	}
	return nil
}

// matrix makes the result, several series at a time.
func (e *evaluation) matrix(ctx context.Context, all []*series, goroutines int) (*vector.Matrix, error) {
	m := &vector.Matrix{Steps: e.steps}
	var (
		mu    sync.Mutex // of the matrix, of err and of what workers[0] has charged
		err   error
		taken atomic.Int64
		wait  sync.WaitGroup
	)
	for range min(goroutines, len(all)) {
		wait.Go(func() {
			ctx, done := model.Computing(ctx)
			defer done()
			for i := taken.Add(1) - 1; i < int64(len(all)); i = taken.Add(1) - 1 {
				var made vector.Series
				some := false
				failure := model.Caught(func() (err error) {
					made, some, err = e.made(all[i].labels, all[i].window.Values)
					return err
				})
				if failure == nil {
					failure = ctx.Err()
				}
				mu.Lock()
				if some {
					m.Series = append(m.Series, made)
				}
				_ = e.workers[0].charge(-all[i].bytes()) // giving back does not fail
				if err == nil {
					err = failure
				}
				mu.Unlock()
				if all[i] = nil; failure != nil {
					taken.Store(int64(len(all)))
				}
			}
		})
	}
	own := model.ProcessorOf(ctx)
	own.Leave()
	wait.Wait()
	if own.Enter(ctx); err != nil {
		m.Release(e.quota)
		return nil, err
	}
	m.SortByLabels()
	return m, nil
}

// made returns a series with the values that give hands over, and false if there are none.
func (e *evaluation) made(labels model.Labels, values func(window.Result)) (s vector.Series, some bool, err error) {
	if err := e.quota.TakeBytes(vector.SeriesSize(labels, e.steps.Count)); err != nil {
		return s, false, err
	}
	s = vector.Series{Labels: labels, Values: make([]float64, e.steps.Count), Present: vector.NewSet(e.steps.Count)}
	values(func(step int, v float64) {
		s.Values[step] = v
		s.Present.Add(step)
	})
	if s.Present.IsEmpty() { // all of its lines lie between the windows
		return s, false, e.quota.TakeBytes(-vector.SeriesSize(labels, e.steps.Count))
	}
	return s, true, nil
}

// absent makes the result of absent_over_time: 1 at each step whose window has no line.
func (e *evaluation) absent(all []*series) (*vector.Matrix, error) {
	some := vector.NewSet(e.steps.Count)
	for _, s := range all {
		s.window.Values(func(step int, _ float64) { some.Add(step) })
	}
	m := &vector.Matrix{Steps: e.steps}
	if some.Len() == e.steps.Count {
		return m, nil
	}
	labels, err := absentLabels(e.program.expr.Range.Query.Matchers)
	if err != nil {
		return nil, err
	}
	s, _, err := e.made(labels, func(give window.Result) {
		for step := range e.steps.Count {
			if !some.Has(step) {
				give(step, 1)
			}
		}
	})
	if err == nil {
		m.Series = append(m.Series, s)
	}
	return m, err
}
