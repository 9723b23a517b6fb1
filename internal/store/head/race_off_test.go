//go:build !race

package head

import "testing"

// alone skips only under the race detector.
func alone(*testing.T) {}

const fewer = 1
