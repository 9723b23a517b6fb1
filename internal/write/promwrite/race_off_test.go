//go:build !race

package promwrite

const raceEnabled = false
