package route

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
)

// Conf is what the section [relay] of carbon.conf says.
type Conf struct {
	Destinations []Destination
	Protocol     Protocol
	// TLS means that connections are encrypted. CA is a PEM file with the authorities that sign certificates
	// of destinations; empty: those of the system.
	TLS bool
	CA  string
	// RelayRules and AggregationRules are the files that the method needs; empty: it needs none.
	RelayRules, AggregationRules string

	method      method
	hash        hash
	replication int
	diverse     bool
}

// Protocol is a value of DESTINATION_PROTOCOL.
type Protocol string

// The protocols.
const (
	Line     Protocol = "line"
	Pickle   Protocol = "pickle"
	Protobuf Protocol = "protobuf"
)

// method is a value of RELAY_METHOD.
type method string

const (
	byRules         method = "rules"
	byHash          method = "consistent-hashing"
	byAggregate     method = "aggregated-consistent-hashing"
	byFastHash      method = "fast-hashing"
	byFastAggregate method = "fast-aggregated-hashing"
)

// ParseConf returns what a carbon.conf says of the relay, or of an instance of it: its section
// [relay:instance], where it says something, goes before [relay]. The defaults are those of carbon.
func ParseConf(f *carbonconf.File, instance string) (*Conf, error) {
	sections, err := sectionsOf(f, instance)
	if err != nil {
		return nil, err
	}
	c := &Conf{Protocol: Pickle, method: byRules, replication: 1, diverse: true}
	relayRules, aggregationRules, transport := "relay-rules.conf", "aggregation-rules.conf", "none"
	for _, key := range []struct {
		name string
		take func(value string) error
	}{
		{"destinations", func(v string) (err error) { c.Destinations, err = parseDestinations(v); return }},
		{"destination_protocol", one(&c.Protocol, Pickle, Line, Protobuf)},
		{"destination_transport", one(&transport, "none", "ssl")},
		{"destination_ssl_ca", text(&c.CA)},
		{"relay_method", one(&c.method, byRules, byHash, byAggregate, byFastHash, byFastAggregate)},
		{"router_hash_type", one(&c.hash, carbonCH, fnv1aCH, mmh3CH)},
		{"replication_factor", func(v string) (err error) {
			if c.replication, err = strconv.Atoi(v); err != nil || c.replication < 1 {
				err = fmt.Errorf("expected a number of copies from 1, found %q", carbonconf.Short(v))
			}
			return
		}},
		{"diverse_replicas", boolean(&c.diverse)},
		{"relay_rules", text(&relayRules)},
		{"aggregation_rules", text(&aggregationRules)},
		{"destination_pool_replicas", unsupported},
		{"tag_relay_normalized", unsupported},
	} {
		if s, k := sections.get(key.name); k != nil {
			if err := key.take(k.Value); err != nil {
				return nil, s.Errorf(k.Line, "%s: %w", strings.ToUpper(key.name), err)
			}
		}
	}
	if len(c.Destinations) == 0 {
		s := sections[0]
		return nil, s.Errorf(s.Line, "DESTINATIONS is missing: points have to go somewhere")
	}
	c.TLS = transport == "ssl"
	switch c.method {
	case byRules:
		c.RelayRules = relayRules
	case byAggregate, byFastAggregate:
		c.AggregationRules = aggregationRules
	}
	if c.hash == "" {
		c.hash = carbonCH
		if c.isFast() {
			c.hash = mmh3CH
		}
	}
	return c, c.check(sections.get("destinations"))
}

// sections are those of an instance and of all instances, in the order in which they are looked at.
type sections []*carbonconf.Section

func sectionsOf(f *carbonconf.File, instance string) (all sections, err error) {
	names := []string{"relay"}
	if instance != "" {
		names = []string{"relay:" + instance, "relay"}
	}
	for n, name := range names {
		i := slices.IndexFunc(f.Sections, func(s *carbonconf.Section) bool { return s.Name == name })
		switch {
		case i >= 0:
			all = append(all, f.Sections[i])
		case n == 0:
			return nil, fmt.Errorf("%w: %s has no section [%s]", model.ErrInvalid, f.Path, name)
		}
	}
	return all, nil
}

// get returns the first value of a key, and its section.
func (all sections) get(name string) (*carbonconf.Section, *carbonconf.Key) {
	for _, s := range all {
		if k := s.Get(name); k != nil && k.Value != "" {
			return s, k
		}
	}
	return nil, nil
}

func (c *Conf) isFast() bool { return c.method == byFastHash || c.method == byFastAggregate }

// check finds destinations that cannot be told apart.
func (c *Conf) check(s *carbonconf.Section, destinations *carbonconf.Key) error {
	seen := map[Destination]bool{}
	for _, d := range c.Destinations {
		key := d
		if c.method != byRules {
			key.Port = 0 // of which hashes do not know
		}
		if seen[key] {
			return s.Errorf(destinations.Line, "DESTINATIONS: %s is listed twice; hashes distinguish destinations by host and instance", d)
		}
		seen[key] = true
	}
	return nil
}

// one takes one of the values.
func one[T ~string](to *T, values ...T) func(string) error {
	return func(v string) error {
		if !slices.Contains(values, T(v)) {
			return fmt.Errorf("expected one of %v, found %q", values, carbonconf.Short(v))
		}
		*to = T(v)
		return nil
	}
}

func text(to *string) func(string) error {
	return func(v string) error { *to = v; return nil }
}

func boolean(to *bool) func(string) error {
	return func(v string) (err error) { *to, err = parseBool(v); return }
}

// parseBool reads a boolean as configparser of Python does.
func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "1", "yes", "true", "on":
		return true, nil
	case "0", "no", "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("expected True or False, found %q", carbonconf.Short(v))
}

func unsupported(v string) error {
	if on, err := parseBool(v); err != nil || on {
		return fmt.Errorf("it is not supported: expected False, found %q", carbonconf.Short(v))
	}
	return nil
}
