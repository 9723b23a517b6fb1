// Package text holds lines of logs as a part stores, merges and reads them: in units.
//
// A unit is a page of metadata (times, lengths, structured metadata), a page of lines, and a filter in a page
// of filters. A unit of one series is coded once and then copied from part to part, as long as no other input
// has lines in between. Reading asks the filters first: an evaluator says what one page of filters rules out,
// and a memo remembers it by page. The Verdicts of a query know the units of its selection. They decide which
// pages are read together (prefetch.go).
package text
