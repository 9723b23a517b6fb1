//go:build !race

package part

import "testing"

// alone skips only under the race detector.
func alone(*testing.T) {}
