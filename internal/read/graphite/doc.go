// Package graphite evaluates targets of Graphite over the read path: from text and a window of time to
// series on grids.
//
// It owns the evaluation of the tree, the fetching of paths for each window, and the table of functions,
// which it puts together from the families below it. Results have the names, tags, order, starts, steps and
// values of graphite-web 1.1.10; docs/graphite.md lists the deliberate differences. It writes no response,
// and it finds no names itself: a [Finder] does.
package graphite
