// Package logql answers LogQL: it takes a query apart into what selects streams, what a page can be searched
// for, and what is done with each line, and runs it over the pages of text that package read selects, nearest
// to the wanted end first, until no page can change the answer any more. It also follows new lines (tail),
// and answers what Loki's other requests ask of streams: their labels, and how much there is of them.
//
// It owns the order of execution, the memory of an answer and the figures of what it cost. It never parses
// (package syntax does), never looks into a line (package line does), and never gives part of an answer as
// the whole of it.
package logql
