//go:build race

package compact

// fleetTenants is smaller here: under the race detector the codecs take some hundred times as long.
const fleetTenants = 40

const underRace = true
