// Command bench runs named loads against Shale and other servers in turn and measures from outside what each
// load costs them: CPU time, memory, disk and latency. Its subcommands are
//
//	run      run loads and write the figures to a file of JSON lines
//	report   write the figures into the tables and plots of a page
//	memory   print a table of the peak of memory of queries
//	mix      print a table of light and heavy queries of many clients at the same time
//	tenants  print a table of what one tenant that misbehaves does to 49 others
//	compare  compare two systems by benchstat
//	simulate simulate a bucket over a month: objects, requests, money
//	micro    run the benchmarks of Go packages, here and at a commit
//	list     list the loads
//
// It owns the loads and the method, which docs/benchmarks.md describes. It is not part of the product:
// nothing below internal or cmd imports it. Other servers are started from paths that the user gives; bench
// never fetches or builds one.
package main
