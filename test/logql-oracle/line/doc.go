// Package line compares what our stages do with a line to what Loki's do: whether it stays, what becomes of it, and its labels.
//
//	go test ./line                # the cases that are written down, and 50,000 random ones
//	go test ./line -n 1000000     # more of them; -seed gives others
//	go test ./line -record        # writes anew what internal/read/logql/line/testdata keeps of Loki's answers
package line
