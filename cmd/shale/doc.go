// Command shale keeps metrics and logs: `shale serve` is the server, and the other subcommands query it, load
// it, and inspect its files.
//
// Each subcommand is a file. Only this package reads the environment and the command line, handles signals
// and ends the process. internal/app builds the server.
package main
