//go:build !race

package compact

const (
	fleetTenants = 10_000
	underRace    = false
)
