// Package worldtest generates random series with samples of all kinds, exemplars and lines. It also computes
// what a store that got them must return. It is used by tests only.
//
// Every generator draws from a Random: a seeded *rand.Rand, so that a failure can name its seed, or rapid
// through Drawn, so that a failure shrinks.
package worldtest
