// Package series holds the sections about series without their rows: keys, label sets, postings, and masks of
// the windows in which series have rows.
//
// It writes these sections, reads them by rank, by key and by label, and selects series with matchers.
package series
