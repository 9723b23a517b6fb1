// Package simulate is the subcommand `shale plan cache`: its flags and its output.
//
// It owns the defaults of a study and the text of a report. It never reads the environment, and leaves the
// exit status to cmd.
package simulate
