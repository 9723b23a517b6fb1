// Package changes says whether anything that a response depends on has changed since it was computed.
//
// There is one clock, a counter. Each change takes the next number once queries see it, and before anybody is
// told that it has happened. Whoever computes a response reads the clock first. The response holds for as
// long as none of the changes that concern it has a greater number. So it never lacks an acknowledged row. A
// response from before a change may be given until that change is acknowledged, as if it had been asked for
// earlier.
//
// Rows are noted by tenant, signal and window of their times, new series by tenant and signal. These notes
// share a table of fixed size by their hashes. Two notes that meet in one place end responses that would
// still hold, and never keep one that does not. Anything that happens to the catalogue or to deletions
// concerns every response. What the head does to its parts concerns lists of labels only: it never changes
// which rows there are.
package changes
