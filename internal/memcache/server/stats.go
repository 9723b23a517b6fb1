package server

import (
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"github.com/shaledb/shale/internal/memcache/items"
)

// stat appends a statistic.
func (c *conn) stat(name string, value any) {
	c.out = append(append(append(c.out, "STAT "...), name...), ' ')
	switch v := value.(type) {
	case int64:
		c.out = strconv.AppendInt(c.out, v, 10)
	case int:
		c.out = strconv.AppendInt(c.out, int64(v), 10)
	case float64:
		c.out = strconv.AppendFloat(c.out, v, 'f', 6, 64)
	case bool:
		c.out = append(c.out, map[bool]string{true: "yes", false: "no"}[v]...)
	case string:
		c.out = append(c.out, v...)
	}
	c.out = append(c.out, '\r', '\n')
}

// stats is stats, with what follows it.
func (c *conn) stats(w [][]byte) {
	kind := ""
	if len(w) > 1 {
		kind = string(w[1])
	}
	switch kind {
	case "":
		c.general()
	case "settings":
		c.settings()
	case "items": // they are those of classes of sizes, which this server does not have
	case "slabs":
		c.stat("active_slabs", 0)
		c.stat("total_malloced", c.s.items.Capacity())
	case "sizes":
		c.stat("sizes_status", "disabled")
	case "conns":
		c.connStats()
	case "reset":
		c.say("RESET") // the counters go on: readers of rates take differences
		return
	case "detail":
		c.say("CLIENT_ERROR usage: stats detail on|off|dump")
		return
	case "extstore":
		if c.s.disk == nil {
			c.say("ERROR")
			return
		}
	default:
		c.say("ERROR")
		return
	}
	c.out = append(c.out, "END\r\n"...)
}

// general has the names of memcached, as far as the server has something to say of them.
func (c *conn) general() {
	s := c.s
	n := s.items.Counts()
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // zero times show that it failed
	c.stat("pid", os.Getpid())
	c.stat("uptime", max(int64(c.now)-s.begun.Unix(), 0))
	c.stat("time", int64(c.now))
	c.stat("version", Version)
	c.stat("pointer_size", strconv.IntSize)
	c.stat("rusage_user", float64(used.Utime.Nano())/1e9)
	c.stat("rusage_system", float64(used.Stime.Nano())/1e9)
	c.stat("max_connections", s.o.MaxConns)
	c.stat("curr_connections", s.count.conns.Load())
	c.stat("total_connections", s.count.total.Load())
	c.stat("rejected_connections", s.count.refused.Load())
	c.stat("idle_kicks", s.count.idle.Load())
	c.stat("cmd_get", n[items.Gets])
	c.stat("cmd_set", n[items.Sets])
	c.stat("cmd_flush", s.count.flushes.Load())
	c.stat("cmd_touch", n[items.Touches])
	c.stat("cmd_meta", n[items.Metas])
	c.stat("get_hits", n[items.Hits])
	c.stat("get_misses", n[items.Gets]-n[items.Hits])
	c.stat("get_expired", n[items.GetsExpired])
	c.stat("get_flushed", n[items.GetsFlushed])
	c.pair("delete", n[items.Deletes], n[items.DeleteHits])
	c.pair("incr", n[items.Increments], n[items.IncrementHits])
	c.pair("decr", n[items.Decrements], n[items.DecrementHits])
	c.stat("cas_misses", n[items.CASMisses])
	c.stat("cas_hits", n[items.CASHits])
	c.stat("cas_badval", n[items.CASBad])
	c.pair("touch", n[items.Touches], n[items.TouchHits])
	c.stat("store_too_large", s.count.tooLarge.Load())
	c.stat("store_no_memory", s.count.noMemory.Load())
	c.stat("auth_cmds", 0)
	c.stat("auth_errors", 0)
	c.stat("bytes_read", s.count.read.Load())
	c.stat("bytes_written", s.count.written.Load())
	c.stat("limit_maxbytes", s.o.Memory)
	c.stat("accepting_conns", 1)
	c.stat("listen_disabled_num", 0)
	c.stat("threads", runtime.GOMAXPROCS(0))
	c.stat("bytes", n[items.Bytes])
	c.stat("curr_items", n[items.Items])
	c.stat("total_items", n[items.Stored])
	c.stat("expired_unfetched", n[items.ExpiredUnread])
	c.stat("evicted_unfetched", n[items.EvictedUnread])
	c.stat("evictions", n[items.Evictions])
	c.stat("reclaimed", n[items.ExpiredItems])
	if s.disk != nil {
		c.diskStats(n[items.DiskHits])
	}
}

// pair appends hits and misses of a command that was asked for so many times.
func (c *conn) pair(name string, asked, hits int64) {
	c.stat(name+"_misses", asked-hits)
	c.stat(name+"_hits", hits)
}

// diskStats appends what the disk does, under the names of extstore.
func (c *conn) diskStats(gets int64) {
	d := c.s.disk.Stats()
	c.stat("get_extstore", gets)
	c.stat("badcrc_from_extstore", d.Bad)
	c.stat("extstore_objects_used", d.Entries)
	c.stat("extstore_bytes_used", d.Bytes)
	c.stat("extstore_limit_maxbytes", d.Limit)
	c.stat("extstore_objects_written", d.Admitted)
	c.stat("extstore_bytes_written", d.Written)
	c.stat("extstore_objects_evicted", d.Evicted)
	c.stat("extstore_objects_evicted_unread", d.Unread)
	c.stat("extstore_objects_read", gets)
	c.stat("extstore_io_queue", 0)
}

// settings has those that clients and tools read.
func (c *conn) settings() {
	o := &c.s.o
	c.stat("maxbytes", o.Memory)
	c.stat("maxconns", o.MaxConns)
	if host, port, err := net.SplitHostPort(c.nc.LocalAddr().String()); err == nil {
		c.stat("tcpport", port)
		c.stat("udpport", 0)
		c.stat("inter", host)
	}
	c.stat("verbosity", 0)
	c.stat("evictions", "on")
	c.stat("domain_socket", "NULL")
	c.stat("shutdown_command", false)
	c.stat("growth_factor", "1.25") // of the sizes that tools compute; items have their own size here
	c.stat("chunk_size", 48)
	c.stat("num_threads", runtime.GOMAXPROCS(0))
	c.stat("detail_enabled", false)
	c.stat("cas_enabled", true)
	c.stat("binding_protocol", "ascii")
	c.stat("auth_enabled_sasl", false)
	c.stat("auth_enabled_ascii", false)
	c.stat("item_size_max", o.MaxItem)
	c.stat("maxconns_fast", true)
	c.stat("slab_reassign", false)
	c.stat("lru_crawler", false)
	c.stat("flush_enabled", true)
	c.stat("dump_enabled", false)
	c.stat("hash_algorithm", "xxh3")
	c.stat("lru_segmented", false)
	c.stat("idle_timeout", int64(o.IdleTimeout.Seconds()))
	c.stat("track_sizes", false)
	c.stat("ssl_enabled", false)
}

// connStats has the clients.
func (c *conn) connStats() {
	c.s.mu.Lock()
	conns := make([]*conn, 0, len(c.s.conns))
	for other := range c.s.conns {
		conns = append(conns, other)
	}
	c.s.mu.Unlock()
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.id - b.id) })
	for _, other := range conns {
		name := strconv.FormatInt(other.id, 10)
		state := "conn_read"
		if other == c {
			state = "conn_parse_cmd"
		}
		c.stat(name+":addr", "tcp:"+other.addr)
		c.stat(name+":listen_addr", "tcp:"+other.nc.LocalAddr().String())
		c.stat(name+":state", state)
		c.stat(name+":secs_since_last_cmd", max(int64(c.now)-other.last.Load(), 0))
	}
}
