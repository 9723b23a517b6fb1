// Package choose holds the functions that leave out series or values, and those that sort: the groups
// Filter Series, Filter Data and Sorting of the table.
//
// It owns the comparison of series by aggregations of their values, and their order.
package choose
