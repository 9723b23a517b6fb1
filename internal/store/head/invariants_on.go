//go:build invariants

package head

// invariants switches on checks that are too dear for production. All tests run with them.
const invariants = true
