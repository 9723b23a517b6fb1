// Package racetest shortens tests that take long under the race detector. It is used by tests only.
package racetest
