// Package show is the subcommand `shale cache`: its flags and its output.
//
// It owns the text of the reports of a server. It leaves the exit status to cmd.
package show
