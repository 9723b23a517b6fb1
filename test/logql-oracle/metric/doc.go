// Package metric compares the results of LogQL queries with Loki's: numbers and lines, over random data sets.
//
//	go test ./metric                     # recorded cases, and 20,000 random queries at each stage of storage
//	go test ./metric -queries 1000000    # more of them; -seed gives others
//	go test ./metric -victorialogs URL   # the same over a running VictoriaLogs
//	go test ./metric -record             # rewrites Loki's results in internal/read/logql/logqltest/testdata
package metric
