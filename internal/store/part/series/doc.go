// Package series holds what a part knows about its series without their rows: keys, label sets, postings, and
// masks of the windows in which they have rows.
//
// It writes these sections, reads them by rank, by key and by label, and selects series with matchers.
package series
