//go:build !invariants

package head

const invariants = false
