package commands

import (
	"github.com/shaledb/shale/internal/memcache/advise"
	"github.com/shaledb/shale/internal/memcache/capture"
	"github.com/shaledb/shale/internal/memcache/exporter"
	"github.com/shaledb/shale/internal/memcache/router"
	"github.com/shaledb/shale/internal/memcache/server"
	"github.com/shaledb/shale/internal/memcache/top"
)

// Group has the subcommands of `shale memcached`.
type Group struct {
	Advise   advise.Command   `cmd:"" help:"Show what the memory of servers is used for, and which options would fit more items."`
	Router   router.Command   `cmd:"" help:"Pass requests to the servers of their keys, in place of twemproxy."`
	Serve    server.Command   `cmd:"" help:"Serve memcached clients, from memory and a disk that keeps its content over restarts."`
	Top      top.Command      `cmd:"" help:"Show what servers do, every second."`
	Capture  capture.Commands `cmd:"" help:"Record what happens on a server, and find a moment of it."`
	Exporter exporter.Command `cmd:"" help:"Serve metrics of servers to Prometheus, in place of memcached_exporter."`
}
