//go:build torture

package catalog

import "time"

const shipRaceFor = 5 * time.Minute

// smallWorlds are the worlds of TestSmallWorlds: some 100,000 runs.
var smallWorlds = []worldSize{
	{writers: 2, ships: 1, faults: 1, kills: 1},
	{writers: 2, ships: 1, faults: 2},
	{writers: 2, ships: 2},
	{writers: 3, ships: 1},
}
