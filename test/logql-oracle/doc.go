// Package oracle compares our LogQL parser with that of Loki: whether a query is right, the error if it is not, and both texts
// if it is.
//
//	go test .                  # the recorded queries, and 20,000 random ones
//	go test . -queries 1000000 # more of them; -seed gives others
//	go test . -record          # writes anew what internal/read/logql/syntax/testdata keeps of Loki's answers
package oracle
