package commands

import "github.com/shaledb/shale/internal/memcache/advise"

// Group has the subcommands of `shale memcached`.
type Group struct {
	Advise advise.Command `cmd:"" help:"Say where the memory of servers goes, and which options would hold more."`
}
