// Package dayfile keeps one JSON document a day in a folder, for some number of days.
//
// A document is replaced in one step, so a crash leaves the one before. What is in it is for its owner.
package dayfile
