//go:build !invariants

package head

func (m *manifest) checkOrder() {}
