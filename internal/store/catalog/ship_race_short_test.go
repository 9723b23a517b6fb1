//go:build !torture

package catalog

import "time"

const shipRaceFor = 3 * time.Second
