//go:build !invariants

package local

func (m *Manifest) CheckOrder() {}
