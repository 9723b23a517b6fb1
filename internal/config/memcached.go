package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/hash"
)

// Memcached defines the tier of the cache that several servers share.
type Memcached struct {
	Servers     string        `name:"cache.memcached" default:"" placeholder:"HOST:PORT,..." help:"Memcached servers for a cache of pages of the bucket that several Shale servers share, separated by commas. dns+HOST:PORT stands for all addresses of a name, which is resolved again each 30 s. Needs memcached 1.6 or later. Empty: off."`
	Hash        string        `name:"cache.memcached-hash" default:"rendezvous" placeholder:"NAME" help:"How keys are spread over the memcached servers: rendezvous, which moves the fewest keys when a server comes or goes, ketama as in twemproxy, or jump as in Loki, Mimir and Thanos. All Shale servers need the same."`
	Timeout     time.Duration `name:"cache.memcached-timeout" type:"time" default:"100ms" placeholder:"TIME" min:"1ms" max:"1m" help:"Longest wait of a query for memcached. The wait is shorter if the server is usually faster, and never longer than the bucket usually takes."`
	TTL         time.Duration `name:"cache.memcached-ttl" type:"time" default:"7d" placeholder:"TIME" max:"30d" help:"How long a page may stay in memcached, so that pages of merged blocks leave it. 0: until memcached needs the room."`
	Fresh       Switch        `name:"cache.memcached-fresh" default:"on" placeholder:"on|off" help:"Store pages of new blocks in memcached before a query asks for them."`
	Prefix      string        `name:"cache.memcached-prefix" default:"shale" placeholder:"TEXT" help:"Prefix of all keys in memcached. Shale servers with the same prefix and the same bucket share pages."`
	Connections int           `name:"cache.memcached-connections" type:"count" default:"2" placeholder:"N" min:"1" max:"64" help:"Connections to each memcached server for reads, besides one for writes. Each takes many requests at a time."`
	TLS         Switch        `name:"cache.memcached-tls" default:"off" placeholder:"on|off" help:"Use TLS for all connections to memcached."`
	TLSCA       string        `name:"cache.memcached-tls-ca" default:"" placeholder:"FILE" help:"Certificates in PEM of the authorities that memcached servers are checked against. Empty: those of the system."`
	TLSCert     string        `name:"cache.memcached-tls-cert" default:"" placeholder:"FILE" help:"PEM file with the client certificate that Shale presents to memcached, followed by its key. Empty: none."`
}

// List returns the servers, or none if the tier is off.
func (m *Memcached) List() (servers []string) {
	for s := range strings.SplitSeq(m.Servers, ",") {
		if s = strings.TrimSpace(s); s != "" {
			servers = append(servers, s)
		}
	}
	return servers
}

// memcachedRules returns the rules for the settings of memcached.
func memcachedRules() []rule {
	return []rule{
		{"cache.memcached", func(c *Config) error {
			if c.Memcached.Servers == "" {
				return nil
			}
			return memcache.CheckServers(c.Memcached.List())
		}},
		{"cache.memcached-hash", func(c *Config) error {
			_, err := hash.New(c.Memcached.Hash, []string{"x:1"})
			return err
		}},
		{"cache.memcached-tls-ca", func(c *Config) error { return needsTLS(c, c.Memcached.TLSCA) }},
		{"cache.memcached-tls-cert", func(c *Config) error { return needsTLS(c, c.Memcached.TLSCert) }},
	}
}

func needsTLS(c *Config, file string) error {
	if file != "" && !c.Memcached.TLS.On() {
		return fmt.Errorf("%s would not be used: cache.memcached-tls is off", file)
	}
	return nil
}
