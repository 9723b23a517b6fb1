//go:build !race

package racetest

import "testing"

// SkipSerial skips a test under the race detector only.
func SkipSerial(*testing.T) {}

// Fewer divides the rounds of a test that is long under the race detector.
const Fewer = 1
