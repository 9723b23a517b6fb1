//go:build !invariants

package rows

func (r *FamilyRows) checkOrder() {}
