// Package line compares the effect of our stages on a line with the effect of Loki's: whether the line stays,
// its text, and its labels.
//
//	go test ./line                # the recorded cases, and 50,000 random ones
//	go test ./line -n 1000000     # more of them; -seed gives others
//	go test ./line -record        # rewrites Loki's results in internal/read/logql/line/testdata
package line
