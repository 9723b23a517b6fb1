// Package push asks Loki what it makes of requests that bring log lines: labels, service_name, lines, structured metadata,
// detected_level, and the texts of refusals. The requests and its answers lie in testdata of the receivers, whose own tests
// compare.
//
//	go test ./...         # are the answers still Loki's?
//	go test ./... -record # writes them anew
package push
