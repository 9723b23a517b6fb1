// Package push records how Loki handles push requests: labels, service_name, lines, structured metadata,
// detected_level, and error texts. The requests and Loki's responses are in testdata of the receivers, whose
// own tests compare.
//
//	go test ./...         # check the recorded responses
//	go test ./... -record # rewrite them
package push
