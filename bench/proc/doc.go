// Package proc measures a process from outside, by what Linux says in /proc: processor time, memory and its peak, and
// what was written; and the machine, so that a figure can name where it was measured.
//
// It owns the reading of these files. It never runs inside the process that it measures, so that nothing of the
// measurement is in the figure.
package proc
