package syntax

// validate says what is wrong with a query whose grammar is right: the first thing, from the outside in and
// from left to right.
func (p *parser) validate(e Expr) error {
	if bad := p.late[e]; bad != nil {
		return bad
	}
	switch e := e.(type) {
	case *LogQuery:
		return e.checkSelects()
	case *RangeAggregation:
		return e.Range.Query.checkSelects()
	case *VectorAggregation:
		if (e.Op == Sort || e.Op == SortDesc) && len(e.Grouping.Labels) > 0 {
			return wholeError("sort and sort_desc doesn't allow grouping by ")
		}
		return p.validate(e.Expr)
	case *LabelReplace:
		return p.validate(e.Expr)
	case *BinaryExpr:
		if err := p.validate(e.Left); err != nil {
			return err
		}
		return p.validate(e.Right)
	}
	return nil
}

// checkSelects demands that at least one matcher leaves out the streams without its label: a query for all
// streams is a mistake.
func (q *LogQuery) checkSelects() error {
	for _, m := range q.Matchers {
		if !m.MatchesEmpty() {
			return nil
		}
	}
	return wholeError("queries require at least one regexp or equality matcher that does not have an empty-compatible value. " +
		"For instance, app=~\".*\" does not meet this requirement, but app=~\".+\" will")
}
