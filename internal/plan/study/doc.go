// Package study answers the questions of `shale plan cache`: what each policy does at each size, which size
// meets a target, and what cluster carries it.
//
// It owns the report: figures in the units of the real system, its rows and its chart. It prints nothing, and
// never decides what a cache keeps.
package study
