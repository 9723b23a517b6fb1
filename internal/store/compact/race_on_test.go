//go:build race

package compact

// fleetTenants is smaller here: under the race detector the codecs take about a hundred times as long.
const fleetTenants = 40

const underRace = true
