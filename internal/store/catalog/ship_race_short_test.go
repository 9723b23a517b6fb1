//go:build !torture

package catalog

import "time"

const shipRaceFor = 3 * time.Second

// smallWorlds are the worlds of TestSmallWorlds: about 8,000 runs.
var smallWorlds = []worldSize{{writers: 2, ships: 1, faults: 1, kills: 1}}
