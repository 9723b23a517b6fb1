// Package lines is the codec of pages of log lines, and of the filters over them.
//
// The codec splits lines into fixed text and columns of values (the files fields*.go). A filter is a Bloom
// filter for each class of [Items]; it rules out substrings that the lines do not have. A [Literal] is the
// part of a query that is looked up in filters. docs/adr/0005-codec-of-lines.md and
// docs/adr/0006-filter-of-lines.md have the decisions.
package lines
