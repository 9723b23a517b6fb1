// Package badinput starts the built program with small limits and sends wrong, huge, truncated and hostile
// input to every receiver, endpoint, command and file. The folder testdata has a golden file for each
// receiver or API.
//
// The test owns the processes that it starts, each in a temporary folder and on free ports of the loopback
// interface. It never imports a room of the engine. After each attack the server must be ready, take a good
// write by each protocol, show it to a query, and be within its memory. Every sample and line that was sent
// must be stored, counted as discarded, or refused with an error.
//
// The limits: 128 MiB of memory, 8 tenants, 32 connections, bodies of 4 MiB, 8 MiB when decoded, samples of
// at most 24 hours, queries of at most 5 seconds. A block of a golden file is the input, the outcome, the
// text of the response or of the log, and the counters of Shale that moved, without shale_ and _total. Words
// in capitals stand for values that differ from run to run; NOW is the Unix time in seconds. FILE and FOLDER
// hold a line of text that Shale did not write; the port CLOSED has no listener.
//
// The test carries the build tag e2e. To rewrite the golden files:
//
//	go test -tags invariants,e2e -count=1 ./test/badinput -rewrite
package badinput
