// Package fields finds the fields of log lines: the names in their structured metadata, the labels that the
// stages of a query made, and what | json or | logfmt would extract. For each name it reports the type of
// its values, how many of them differ, and which parser extracts it.
//
// A Detector takes the lines of a sample, one at a time. It never chooses the sample or reads from a store.
package fields
