// Package match answers whether a line satisfies the line filters of a LogQL query.
//
// It turns regular expressions into the cheapest equal test and finds the strings that a matching line must
// contain. [Filter] searches the bytes of a whole page for those strings at once. A match
// that may take long can be ended while it runs. It knows no labels and no stages.
package match
