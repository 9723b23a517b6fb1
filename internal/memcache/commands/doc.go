// Package commands lists the subcommands of `shale memcached`.
//
// It owns their names and their one-line helps. Each subcommand has its flags and its output in its own room.
package commands
