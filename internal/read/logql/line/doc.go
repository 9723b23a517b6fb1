// Package line does with one log line what the stages of a LogQL query say: it filters it, takes labels out of it, rewrites it and
// its labels, and says in which of three categories each label of the result is: of the stream, of the structured metadata, or
// parsed.
//
// Compile makes a Pipeline of the stages that package syntax has parsed. A Pipeline never changes and serves any number of
// goroutines; each of them takes a Filter for the line filters that lead the query, which look at whole pages, and a Runner for
// all that follows, which looks at one line at a time. What a line must contain to be of interest at all (TextFilter) lets a
// source leave pages out.
//
// The answers are those of Loki 3.7, quirks included where they can be seen on well-formed queries: line filters are moved to
// the front of their stretch of stages, a parser that meets a label that a later label filter refuses drops the line at once,
// and what a stage cannot do is put into the labels __error__ and __error_details__. Regular expressions keep the meaning that
// they have in Go, also where Loki's simplification of them changes it.
//
// A line, an expression or a template cannot take unbounded time or memory: programs of regular expressions, the work of
// templates, the depth of JSON and the labels of a line have limits, whose errors are of class model.ErrLimit and name them.
//
// It never parses LogQL, never reads pages, and starts no goroutines.
package line
