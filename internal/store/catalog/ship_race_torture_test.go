//go:build torture

package catalog

import "time"

const shipRaceFor = 5 * time.Minute
