// Package rename holds the functions that change names of series and nothing else: the group Alias of the
// table.
//
// It owns the texts that become parts of names, and the use of regular expressions in them.
package rename
