// Package logql evaluates LogQL. It prepares a query once: the selector of the streams, the words that a page
// is searched for, and the stages for each line. It runs the query through package selection, which reads
// pages from the wanted end on until no further page can change the result. A metric query has a plan of
// package plan, whose leaves are such runs. The package also tails new lines, and answers Loki's other
// questions about streams: their labels and their volume.
//
// It owns the result, its memory and its cost. It never parses (package syntax does), never looks into a line
// (package line does), and never returns part of a result as the whole.
package logql
