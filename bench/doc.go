// Command bench runs named loads against Shale and its rivals in turn and measures from outside what each
// load costs them: processor time, memory, disk and latency. Its subcommands are
//
//	run      run loads and write what was measured to a file of JSON lines
//	report   make the tables and plots of a page of it
//	compare  hand two systems of it to benchstat
//	micro    run the benchmarks of Go packages, here and at a commit
//	list     say which loads there are
//
// It owns the loads and the method, which docs/benchmarks.md describes. It is no part of the product: nothing
// below internal or cmd imports it. Rivals are started from paths that the user gives; it never fetches or
// builds one.
package main
