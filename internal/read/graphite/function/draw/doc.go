// Package draw holds the functions that say how series are drawn, and those without a family: lines,
// consolidation, fallbacks and events. They are the groups Graph and Special of the table.
//
// It owns the stacks of a request. It draws nothing itself.
package draw
