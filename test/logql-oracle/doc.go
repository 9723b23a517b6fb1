// Package oracle compares our LogQL parser with Loki's: whether a query is valid, the error if it is not, and
// both texts if it is.
//
//	go test .                  # the recorded queries, and 20,000 random ones
//	go test . -queries 1000000 # more of them; -seed gives others
//	go test . -record          # rewrites Loki's results in internal/read/logql/syntax/testdata
package oracle
