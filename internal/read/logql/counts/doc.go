// Package counts counts the work that a LogQL query is prepared with. Tests prove with it that a query is
// parsed and planned once, and that each of its regular expressions is compiled once. It counts in builds
// with the tag invariants only; in all others its functions are empty.
package counts
