// Package proc measures a process from outside, by Linux's /proc: CPU time, memory and its peak, and writes.
// It also describes the machine, which belongs to every figure.
//
// It owns the reading of these files. It never runs inside the process that it measures, so that the figure
// does not include the measurement.
package proc
