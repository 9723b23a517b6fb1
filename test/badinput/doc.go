// Package badinput starts the built program with small limits and tries wrong, huge, truncated and hostile input on
// every receiver, endpoint, command and file, and keeps what came back as the table docs/bad-input.md.
//
// It owns the processes that it starts, each in a temporary folder and on free ports of the loopback interface. After
// each attack the server must be ready, take a good write by each protocol, show it to a query, and be within its
// memory; and every sample that was sent must be stored, counted as left out, or refused with an answer. It never
// imports a room of the engine. Its tests carry the build tag e2e; -rewrite makes the table anew:
//
//	go test -tags e2e -count=1 -v ./test/badinput -rewrite
package badinput
