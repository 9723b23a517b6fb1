// Package push compares what our receivers of log lines make of a request with what Loki's distributor makes of it: labels,
// service_name, lines, structured metadata, detected_level, and the texts of refusals.
//
//	go test ./...                # the cases, and 3,000 random lines
//	go test ./... -lines 1000000 # more of them; -seed gives others
package push
