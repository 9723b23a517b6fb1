package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/store/retention"
)

// minMemory is the memory that one request, one query and the smallest of each buffer need.
const minMemory = 64 << 20

const day = 24 * time.Hour

type rule struct {
	setting string
	check   func(c *Config) error
}

// rules returns the rules for values besides the bounds in their tags. Each rule checks one setting.
func rules() []rule {
	return append(slices.Concat(memcachedRules(), kafkaRules(), rolesRules()), []rule{
		{"data-dir", func(c *Config) error { return notEmpty(c.DataDir) }},
		{"bucket", func(c *Config) error {
			_, err := c.BucketLocation()
			return err
		}},
		{"http-listen", func(c *Config) error { return hostPort(c.HTTPListen) }},
		{"graphite-listen", func(c *Config) error { return optionalHostPort(c.GraphiteListen) }},
		{"graphite-pickle-listen", func(c *Config) error { return optionalHostPort(c.GraphitePickleListen) }},
		{"graphite-cache-query-listen", func(c *Config) error { return optionalHostPort(c.GraphiteCacheListen) }},
		{"graphite-protobuf-listen", func(c *Config) error { return optionalHostPort(c.GraphiteProtobufListen) }},
		{"graphite.relay-tls-key-file", relayCertificate},
		{"graphite.relay-instance", func(c *Config) error {
			if c.Carbon.RelayInstance != "" && c.Carbon.Relay == "" {
				return errors.New("graphite.relay must be set, too")
			}
			return nil
		}},
		{"graphite-tls-listen", func(c *Config) error { return secureHostPort(c, c.GraphiteTLSListen) }},
		{"graphite-pickle-tls-listen", func(c *Config) error { return secureHostPort(c, c.GraphitePickleTLSListen) }},
		{"tls.key-file", func(c *Config) error {
			if (c.TLS.Cert == "") != (c.TLS.Key == "") {
				return errors.New("tls.cert-file and tls.key-file must be set together")
			}
			return nil
		}},
		{"tls.client-ca-file", func(c *Config) error {
			if c.TLS.ClientCA != "" && c.TLS.Cert == "" {
				return errors.New("requires tls.cert-file")
			}
			return nil
		}},
		{"tls.client-certs", func(c *Config) error {
			if c.TLS.ClientCerts.Required() && c.TLS.ClientCA == "" {
				return errors.New("require needs tls.client-ca-file")
			}
			return nil
		}},
		{"memory", func(c *Config) error {
			if !c.Memory.IsPart() && c.Memory.Of(0) < minMemory {
				return fmt.Errorf("%s is too small: must be at least %s", c.Memory, Size(minMemory))
			}
			return nil
		}},
		{"disk", func(c *Config) error { return notZero(c.Disk) }},
		{"cache.ssd", func(c *Config) error {
			if c.SSD.Dir != "" && c.SSD.Bytes < ssd.MinBytes {
				return fmt.Errorf("%s is too small: must be at least %s", Size(c.SSD.Bytes), Size(ssd.MinBytes))
			}
			return nil
		}},
		{"retention-rules", func(c *Config) error {
			_, err := retention.Compile(c.RetentionRules, c.Retention)
			return err
		}},
		{"limits.inflight-bytes", func(c *Config) error { return notZero(c.Inflight) }},
		{"limits.decoded-bytes", func(c *Config) error {
			if body, decoded := c.Write.MaxBodyBytes, c.Write.MaxDecodedBytes; decoded < body {
				return fmt.Errorf("%s is too small: must be at least limits.body-bytes, which is %s", Size(decoded), Size(body))
			}
			return nil
		}},
		{"store.window", func(c *Config) error {
			if w := c.Windows.Window; day%w != 0 {
				return fmt.Errorf("%s is not a window: must be at least 1m and divide 24h", Duration(w))
			}
			return nil
		}},
		{"query.max-bytes", func(c *Config) error { return notZero(c.QueryBytes) }},
	}...)
}

func (l *loader) validate() { l.validateIf(func(string) bool { return true }) }

// validateSet validates the settings that have been set.
func (l *loader) validateSet() {
	l.validateIf(func(name string) bool {
		_, set := l.origins[name]
		return set
	})
}

func (l *loader) validateIf(counts func(setting string) bool) {
	bounded := make(map[string]bool)
	for i := range l.settings {
		s := &l.settings[i]
		if !counts(s.Name) {
			continue
		}
		if err := s.checkBounds(&l.config); err != nil {
			l.mistake(l.origins[s.Name], s.Name, err)
			bounded[s.Name] = true
		}
	}
	for _, r := range rules() {
		if bounded[r.setting] || !counts(r.setting) {
			continue
		}
		if err := r.check(&l.config); err != nil {
			l.mistake(l.origins[r.setting], r.setting, err)
		}
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

// secureHostPort checks the address of a listener whose clients are known by certificates.
func secureHostPort(c *Config, s string) error {
	switch {
	case s == "":
		return nil
	case c.TLS.Cert == "" || c.TLS.ClientCA == "" || c.Auth.Tokens == "":
		return errors.New("requires tls.cert-file, tls.client-ca-file and auth.tokens, which gives clients their tenants")
	}
	return hostPort(s)
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

// relayCertificate checks that a certificate has its key.
func relayCertificate(c *Config) error {
	if (c.Relay.Cert == "") != (c.Relay.Key == "") {
		return errors.New("graphite.relay-tls-cert-file and graphite.relay-tls-key-file must be set together")
	}
	return nil
}

// optionalHostPort checks an address that may be empty.
func optionalHostPort(address string) error {
	if address == "" {
		return nil
	}
	return hostPort(address)
}
