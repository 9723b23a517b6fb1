//go:build !race

package racetest

import "testing"

// SkipSerial skips a test under the race detector only.
func SkipSerial(*testing.T) {}

// Only returns all cases, and under the race detector only the named ones.
func Only[C any](cases map[string]C, _ ...string) map[string]C { return cases }

// Fewer divides the rounds of a test that is long under the race detector.
const Fewer = 1
