package route

import (
	"slices"

	"github.com/shaledb/shale/internal/carbonconf"
)

// Router says where paths go. Several goroutines may use it.
type Router struct {
	c     *Conf
	rules []rule // of the method rules
	ring  ring   // of the others
	// aggregates returns the aggregates that a path belongs to; nil: paths themselves are hashed.
	aggregates func(path string) ([]string, error)
}

// Router returns the router of a configuration. The file is that of RelayRules, and aggregates returns the
// aggregates of a path by AggregationRules. Each is nil if the method does not need it.
func (c *Conf) Router(relayRules *carbonconf.File, aggregates func(path string) ([]string, error)) (*Router, error) {
	r := &Router{c: c}
	var err error
	switch {
	case c.method == byRules:
		r.rules, err = parseRules(relayRules, c.Destinations)
	case c.isFast():
		r.ring = newFast(c.hash, c.Destinations)
	default:
		r.ring = newConsistent(c.hash, c.Destinations)
	}
	if c.AggregationRules != "" {
		r.aggregates = aggregates
	}
	return r, err
}

// Conf returns the configuration.
func (r *Router) Conf() *Conf { return r.c }

// Route returns the indexes of the destinations of a path in Conf.Destinations, in order and each once.
func (r *Router) Route(path string) ([]int, error) {
	var to []int
	keys := []string{path}
	if r.aggregates != nil {
		of, err := r.aggregates(path)
		if err != nil {
			return nil, err
		}
		if len(of) > 0 {
			keys = of
		}
	}
	for _, key := range keys {
		var err error
		if r.ring == nil {
			to, err = r.match(to, key)
		} else {
			to = r.replicas(to, key)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(to)
	return slices.Compact(to), nil
}

func (r *Router) match(to []int, path string) ([]int, error) {
	for i := range r.rules {
		one := &r.rules[i]
		if one.pattern != nil {
			if ok, err := one.pattern.Search(path); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		if to = append(to, one.to...); !one.goesOn {
			break
		}
	}
	return to, nil
}

// replicas adds as many destinations of the ring as REPLICATION_FACTOR says. Diverse ones have different
// hosts.
func (r *Router) replicas(to []int, key string) []int {
	n := 0
	var hosts []string
	r.ring.nodes(key, func(i int) bool {
		if host := r.c.Destinations[i].Host; r.c.diverse {
			if slices.Contains(hosts, host) {
				return true
			}
			hosts = append(hosts, host)
		}
		to = append(to, i)
		n++
		return n < r.c.replication
	})
	return to
}
