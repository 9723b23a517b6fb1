//go:build race

package promwrite

// raceEnabled says that the race detector is on. It lets pools drop what they are given, so allocations cannot be
// counted under it.
const raceEnabled = true
