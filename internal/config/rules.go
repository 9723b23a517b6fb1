package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// minMemory is what the process needs to hold one request, one query and the smallest of each buffer.
const minMemory = 64 << 20

const (
	day = Duration(24 * time.Hour)
	// Below these, blocks are mostly footers.
	leastWindow  = Duration(time.Minute)
	leastLateAge = Duration(time.Minute)
	leastGrace   = Duration(time.Second)
)

type rule struct {
	setting string
	check   func(c *Config) error
}

// rules returns what values must keep beyond being readable, but for the limits that are plain numbers. Each judges one
// setting.
func rules() []rule {
	return []rule{
		{"data-dir", func(c *Config) error { return notEmpty(c.DataDir) }},
		{"http-listen", func(c *Config) error { return hostPort(c.HTTPListen) }},
		{"graphite-listen", func(c *Config) error {
			if c.GraphiteListen == "" {
				return nil
			}
			return hostPort(c.GraphiteListen)
		}},
		{"graphite-pickle-listen", func(c *Config) error {
			if c.GraphitePickleListen == "" {
				return nil
			}
			return hostPort(c.GraphitePickleListen)
		}},
		{"memory", func(c *Config) error {
			if !c.Memory.IsPart() && c.Memory.Of(0) < minMemory {
				return fmt.Errorf("%s is too small; the least is %s", c.Memory, Size(minMemory))
			}
			return nil
		}},
		{"disk", func(c *Config) error { return notZero(c.Disk) }},
		{"limits.inflight-bytes", func(c *Config) error { return notZero(c.Limits.Inflight) }},
		{"limits.body-bytes", atLeast(func(c *Config) int64 { return int64(c.Limits.BodyBytes) }, 1<<10)},
		{"limits.decoded-bytes", func(c *Config) error {
			if c.Limits.DecodedBytes < c.Limits.BodyBytes {
				return fmt.Errorf("%s is less than limits.body-bytes, which is %s", c.Limits.DecodedBytes, c.Limits.BodyBytes)
			}
			return nil
		}},
		{"query.max-lines", atLeast(func(c *Config) int64 { return int64(c.Query.MaxLines) }, 1)},
		{"query.timeout", func(c *Config) error {
			if c.Query.Timeout == 0 {
				return errors.New("0 would end every query at once")
			}
			return nil
		}},
		{"query.max-concurrent", atLeast(func(c *Config) int64 { return int64(c.Query.Concurrency) }, 1)},
		{"query.max-series", atLeast(func(c *Config) int64 { return c.Query.MaxSeries }, 0)},
		{"query.max-samples", atLeast(func(c *Config) int64 { return c.Query.MaxSamples }, 0)},
		{"store.window", func(c *Config) error {
			if w := c.Store.Window; w < leastWindow || day%w != 0 {
				return fmt.Errorf("%s is no window; allowed are times of at least %s of which a day is a multiple", w, leastWindow)
			}
			return nil
		}},
		{"store.grace", func(c *Config) error {
			if g := c.Store.Grace; g < leastGrace || g > day {
				return fmt.Errorf("%s is out of bounds; allowed are %s to %s", g, leastGrace, day)
			}
			return nil
		}},
		{"store.late-age", func(c *Config) error {
			if c.Store.LateAge < leastLateAge {
				return fmt.Errorf("%s would make a block of every few late samples; the least is %s", c.Store.LateAge, leastLateAge)
			}
			return nil
		}},
		{"query.max-bytes", func(c *Config) error { return notZero(c.Query.MaxBytes) }},
	}
}

// limitRules judge the limits that are plain numbers.
func limitRules() []rule {
	return []rule{
		{"limits.labels", between(func(c *Config) int64 { return int64(c.Limits.Labels) }, 1, 1024)},
		{"limits.label-name-bytes", between(func(c *Config) int64 { return int64(c.Limits.NameBytes) }, 16, 1<<16-1)},
		{"limits.label-value-bytes", between(func(c *Config) int64 { return int64(c.Limits.ValueBytes) }, 16, 1<<16-1)},
		{"limits.histogram-buckets", between(func(c *Config) int64 { return int64(c.Limits.Buckets) }, 1, 1<<14)},
		{"limits.new-series", atLeast(func(c *Config) int64 { return c.Limits.NewSeries }, 0)},
		{"limits.tenant-new-series", atLeast(func(c *Config) int64 { return c.Limits.TenantNew }, 0)},
		{"limits.metadata-families", atLeast(func(c *Config) int64 { return int64(c.Limits.Families) }, 1)},
		{"limits.metadata-tenant-bytes", atLeast(func(c *Config) int64 { return int64(c.Limits.FamilyBytes) }, 1<<10)},
		{"limits.metadata-bytes", atLeast(func(c *Config) int64 { return int64(c.Limits.AboutBytes) }, 1<<10)},
		// A stored value has at most 1 MiB, and a line is one with its metadata.
		{"limits.line-bytes", between(func(c *Config) int64 { return int64(c.Limits.LineBytes) }, 1<<10, 768<<10)},
		{"limits.line-metadata-bytes", between(func(c *Config) int64 { return int64(c.Limits.MetaBytes) }, 0, 128<<10)},
		{"limits.line-metadata-entries", between(func(c *Config) int64 { return int64(c.Limits.MetaEntries) }, 0, 1024)},
		{"limits.tenant-lines", atLeast(func(c *Config) int64 { return c.Limits.TenantLines }, 0)},
		{"limits.tenant-line-bytes", atLeast(func(c *Config) int64 { return int64(c.Limits.TenantText) }, 0)},
		{"limits.tenants", between(func(c *Config) int64 { return int64(c.Limits.Tenants) }, 1, 1<<16-1)},
		{"limits.connections", atLeast(func(c *Config) int64 { return int64(c.Limits.Connections) }, 1)},
	}
}

func (l *loader) validate() {
	for _, r := range append(rules(), limitRules()...) {
		if err := r.check(&l.config); err != nil {
			l.mistake(l.origins[r.setting], r.setting, err)
		}
	}
}

func atLeast(value func(c *Config) int64, least int64) func(c *Config) error {
	return func(c *Config) error {
		if n := value(c); n < least {
			return fmt.Errorf("%d is too small; the least is %d", n, least)
		}
		return nil
	}
}

func between(value func(c *Config) int64, least, most int64) func(c *Config) error {
	return func(c *Config) error {
		if n := value(c); n < least || n > most {
			return fmt.Errorf("%d is out of bounds; allowed are %d to %d", n, least, most)
		}
		return nil
	}
}

func notEmpty(s string) error {
	if s == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func notZero(s Share) error {
	if !s.IsPart() && s.Of(0) == 0 {
		return errors.New("must not be 0")
	}
	return nil
}

func hostPort(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address; write HOST:PORT, such as 127.0.0.1:9480, or :9480 for all interfaces", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", s)
	}
	return nil
}
