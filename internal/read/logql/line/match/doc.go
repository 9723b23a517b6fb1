// Package match answers whether a line satisfies the line filters of a LogQL query.
//
// It turns regular expressions into the cheapest test that is equal to them, finds the strings that each line
// must have to match, and searches the bytes of a whole page for those strings at once ([Filter]). A match
// that may take long can be ended while it runs. It knows no labels and no stages.
package match
