// Package terminal writes what a server sent for people to read: without control characters, with the labels
// that all rows share once.
//
// Lines and labels come from strangers, and a terminal obeys the control characters in them: they move the
// cursor, change the title, or hide a line. The function [Escape] lets none of them through. The function
// [Selector] writes labels, and a [Common] finds the labels that all rows have.
package terminal
