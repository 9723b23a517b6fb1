// Command shale keeps metrics and logs: `shale serve` is the server, and the other subcommands ask it, load
// it, and look into its files.
//
// Each subcommand is a file. This is the only place that reads the environment and the command line, handles
// signals and ends the process; what runs is built by internal/app.
package main
