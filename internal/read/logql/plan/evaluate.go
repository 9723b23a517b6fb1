package plan

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// Extent names a value: the canonical text of what is evaluated, and the steps at which it is.
type Extent struct {
	Text  string
	Steps vector.Steps
}

// Evaluation evaluates a plan once.
type Evaluation struct {
	Plan  *Plan
	Steps vector.Steps
	// KeepOrder leaves series in the order that a sort gives them. Without it the series of all values are
	// sorted by labels, so that sums are always taken in that order.
	KeepOrder bool
	// Quota is charged for the values that are held.
	Quota *model.Quota
	// Read evaluates a leaf. The matrix is charged to the quota, and its series are sorted by labels. If top
	// is not nil, Read may add the series to it, and return no matrix. With a sum right above the leaf it may
	// do so only if the sum would leave the series as they are.
	Read func(ctx context.Context, leaf *Leaf, extent Extent, top *vector.Top) (*vector.Matrix, error)
	// Above evaluates an aggregation of a leaf whose samples are not grouped for it, or takes a value of that
	// extent that was kept; nil: it is always evaluated. evaluate does so at any steps.
	Above func(ctx context.Context, leaf *Leaf, extent Extent, evaluate func(ctx context.Context, steps vector.Steps) (*vector.Matrix, error)) (*vector.Matrix, error)

	held map[*node]*value
}

// value is the value of a node that is held until its last user has used it.
type value struct {
	matrix *vector.Matrix
	users  int
}

// Run returns the value of the whole plan, which stays charged to the quota. After an error, what is charged
// is for the caller to give back.
func (e *Evaluation) Run(ctx context.Context) (*vector.Matrix, error) {
	e.held = make(map[*node]*value)
	return e.value(ctx, e.Plan.root)
}

// value returns the value of a node. At most the values of operands of the nodes above it are held meanwhile.
func (e *Evaluation) value(ctx context.Context, n *node) (*vector.Matrix, error) {
	if v := e.held[n]; v != nil {
		return v.matrix, nil
	}
	m, err := e.evaluate(ctx, n)
	if err == nil {
		e.held[n] = &value{m, n.users}
	}
	return m, err
}

func (e *Evaluation) evaluate(ctx context.Context, n *node) (*vector.Matrix, error) {
	if n.operation == nil {
		return e.Read(ctx, n.leaf, Extent{n.leaf.Text, e.Steps}, nil)
	}
	if o, leaf := n.above(); leaf != nil && e.Above != nil {
		return e.Above(ctx, leaf, Extent{o.String(), e.Steps}, func(ctx context.Context, steps vector.Steps) (*vector.Matrix, error) {
			part := *e
			part.Steps, part.Above = steps, nil
			part.held = make(map[*node]*value)
			return part.evaluate(ctx, n)
		})
	}
	if m, err := e.pick(ctx, n); m != nil || err != nil {
		return m, err
	}
	operands := make([]*vector.Matrix, len(n.operands))
	for _, i := range order(n.operands) {
		var err error
		if operands[i], err = e.value(ctx, n.operands[i]); err != nil {
			return nil, err
		}
	}
	m, err := n.operation.apply(ctx, e, operands)
	if err != nil {
		return nil, err
	}
	for _, operand := range n.operands {
		v := e.held[operand]
		if v.users--; v.users == 0 {
			v.matrix.Release(e.Quota)
			delete(e.held, operand)
		}
	}
	if !e.KeepOrder {
		m.SortByLabels()
	}
	return m, nil
}

// above returns the aggregation that a node is, and the leaf right below it, if nothing else uses that leaf
// and the groups are fewer than its series.
func (n *node) above() (*syntax.VectorAggregation, *Leaf) {
	o, ok := n.operation.(aggregation)
	if !ok || vector.Picks(o.Op) {
		return nil, nil
	}
	if below := n.operands[0]; below.leaf != nil && below.leaf.Outer == nil && below.users == 1 {
		return o.VectorAggregation, below.leaf
	}
	return nil, nil
}

// pick evaluates a node that picks series of a leaf, without a matrix of all of them. It returns nil for any
// other node, and where the leaf gives a matrix, which it then holds.
func (e *Evaluation) pick(ctx context.Context, n *node) (*vector.Matrix, error) {
	o, ok := n.operation.(aggregation)
	if !ok {
		return nil, nil
	}
	leaf := n.operands[0]
	if leaf.operation != nil && len(leaf.operands) == 1 && leaf.users == 1 && leaf.operands[0].leaf != nil && leaf.operands[0].leaf.Outer != nil {
		leaf = leaf.operands[0] // below the sum that its samples are grouped for
	}
	if leaf.leaf == nil || leaf.users > 1 {
		return nil, nil
	}
	top := vector.NewTop(e.Quota, o.VectorAggregation, e.Steps)
	if top == nil {
		return nil, nil
	}
	m, err := e.Read(ctx, leaf.leaf, Extent{leaf.leaf.Text, e.Steps}, top)
	switch {
	case err != nil:
		top.Release()
		return nil, err
	case m != nil:
		e.held[leaf] = &value{m, leaf.users}
		return nil, nil
	}
	m = top.Matrix()
	if !e.KeepOrder {
		m.SortByLabels()
	}
	return m, nil
}

// order returns the operands in the order in which they are evaluated: first the one that needs more memory,
// since the value of the other is then not held yet. Else the right one, whose errors Loki reports first.
func order(operands []*node) []int {
	switch {
	case len(operands) < 2:
		return []int{0}[:len(operands)]
	case operands[0].need > operands[1].need:
		return []int{0, 1}
	}
	return []int{1, 0}
}

// operation makes a value of the values of operands.
type operation interface {
	apply(ctx context.Context, e *Evaluation, operands []*vector.Matrix) (*vector.Matrix, error)
}

type (
	constant    float64
	aggregation struct{ *syntax.VectorAggregation }
	replacement struct{ *syntax.LabelReplace }
	binary      struct{ *syntax.BinaryExpr }
	withNumber  struct {
		*syntax.BinaryExpr
		number *syntax.Literal
	}
)

func (o constant) apply(_ context.Context, e *Evaluation, _ []*vector.Matrix) (*vector.Matrix, error) {
	return vector.Constant(e.Quota, e.Steps, float64(o))
}

func (o aggregation) apply(ctx context.Context, e *Evaluation, operands []*vector.Matrix) (*vector.Matrix, error) {
	return vector.Aggregate(ctx, e.Quota, o.VectorAggregation, operands[0])
}

func (o replacement) apply(ctx context.Context, e *Evaluation, operands []*vector.Matrix) (*vector.Matrix, error) {
	return vector.ReplaceLabels(ctx, e.Quota, o.LabelReplace, operands[0])
}

func (o binary) apply(ctx context.Context, e *Evaluation, operands []*vector.Matrix) (*vector.Matrix, error) {
	return vector.Combine(ctx, e.Quota, o.BinaryExpr, operands[0], operands[1])
}

func (o withNumber) apply(ctx context.Context, e *Evaluation, operands []*vector.Matrix) (*vector.Matrix, error) {
	return vector.CombineNumber(ctx, e.Quota, o.BinaryExpr, operands[0], o.number)
}
