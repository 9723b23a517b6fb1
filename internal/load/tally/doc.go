// Package tally counts what a running load does, and holds the parts that the reports of all loads share. It
// prints them, and decides nothing.
package tally
