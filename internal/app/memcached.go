package app

import (
	"crypto/tls"
	"fmt"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/cache/memcached"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/roots"
)

// memcachedOptions returns the options of the cache in memcached, or nil if there is to be none.
func memcachedOptions(c *config.Memcached) (*memcached.Options, error) {
	servers := c.List()
	if len(servers) == 0 {
		return nil, nil
	}
	secure, err := memcachedTLS(c)
	if err != nil {
		return nil, err
	}
	return &memcached.Options{
		Client: memcache.Options{Servers: servers, Hash: c.Hash, TLS: secure, Connections: c.Connections, MaxWait: c.Timeout},
		Prefix: c.Prefix, TTL: c.TTL, Fresh: c.Fresh.On(),
	}, nil
}

// memcachedTLS returns nil if connections are to be in the clear.
func memcachedTLS(c *config.Memcached) (*tls.Config, error) {
	if !c.TLS.On() {
		return nil, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSCA != "" {
		var err error
		if secure.RootCAs, err = roots.File(c.TLSCA); err != nil {
			return nil, fmt.Errorf("%w: cache.memcached-tls-ca: %w", model.ErrInvalid, err)
		}
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSCert)
		if err != nil {
			return nil, fmt.Errorf("%w: cache.memcached-tls-cert: %v", model.ErrInvalid, err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	return secure, nil
}

// openMemcached opens the cache in memcached, for which no query waits longer than for the bucket.
func openMemcached(e *EngineOptions, seed model.KeySeed, split budget, bucket *bill.Rate) (*memcached.Tier, error) {
	o := *e.Memcached
	o.Seed, o.QueueBytes, o.Registerer, o.Logger = seed, split.memcachedQueue, e.Registerer, e.Logger
	if o.Client.Bound == nil {
		o.Client.Bound = bucket.Mean
	}
	return memcached.Open(o)
}
