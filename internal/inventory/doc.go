// Package inventory is the subcommands that show what tenants have: `shale cardinality` and `shale usage`.
//
// It owns their flags and their output. A server answers; the exit status is left to cmd.
package inventory
