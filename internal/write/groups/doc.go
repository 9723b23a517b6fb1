// Package groups bounds the active series of a group: those of a metric, and those that a selector matches.
//
// The known set says which series are active, and does not know their labels. So a table counts the series of
// a tenant when it first creates one, adds those that are created after that, and counts again before it
// refuses any. It never counts too few, except for series of requests in flight. It takes a few bytes for
// each metric of a tenant with such limits, in all at most so many, and nothing for a series.
package groups
