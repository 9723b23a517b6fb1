// Package patterns finds the templates of log lines: lines that differ in some words only have one pattern,
// with <_> in place of those words.
//
// A Miner makes patterns of lines, in the manner of Drain: a line joins the most similar template of its
// structure, and words in which they differ become wildcards. A Keeper mines the lines that arrive, stream by
// stream, and keeps how many lines each pattern had in each 10 seconds, within a fixed amount of memory. It
// knows since when its counts are complete. For older times the caller mines a Sample of what is stored.
// Totals adds up both.
//
// A pattern is meant for |>, which looks for each literal of a pattern at its first place after the one
// before. So a pattern matches every line that it was made of only if no wildcard can hold the literal that
// follows it. That is why words, which wildcards stand for, never contain a separator, and why separators
// never become wildcards: see tokens.go.
package patterns
