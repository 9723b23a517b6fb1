package state

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// Groups says how many active series tenants have in a partition, by metrics and by the label sets of their
// limits. Only tenants with such limits are in it.
type Groups struct {
	Partition Partition
	Tenants   map[string]TenantGroups
}

// TenantGroups are the numbers of a tenant.
type TenantGroups struct {
	// Metrics has the metrics that may be near their limit, by what [write/groups.Name] makes of their names.
	Metrics map[string]int64 `json:"metrics,omitempty"`
	// Sets has the numbers of the label sets, in the order of the setting that Text stands for.
	Sets []int64 `json:"sets,omitempty"`
	Text string  `json:"text,omitempty"`
}

// maxSets bounds the label sets of a tenant.
const maxSets = 64

type groupsValue struct {
	Version int                     `json:"version"`
	Tenants map[string]TenantGroups `json:"tenants"`
}

// Encode returns the key and the value of a record.
func (g *Groups) Encode() (key string, value []byte) {
	return g.Partition.key(groupsKind), encode(groupsValue{version, g.Tenants})
}

func decodeGroups(p Partition, value []byte) (any, error) {
	var v groupsValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	if len(v.Tenants) > maxTenants {
		return nil, fmt.Errorf("%w: %d tenants, the limit is %d", model.ErrCorrupt, len(v.Tenants), maxTenants)
	}
	for tenant, of := range v.Tenants {
		wrong := len(of.Sets) > maxSets
		for _, n := range of.Sets {
			wrong = wrong || n < 0 || n > math.MaxInt32
		}
		for _, n := range of.Metrics {
			wrong = wrong || n < 0 || n > math.MaxInt32
		}
		if wrong {
			return nil, fmt.Errorf("%w: tenant %q has a number of series that is out of bounds, or too many", model.ErrCorrupt, tenant)
		}
	}
	return &Groups{p, v.Tenants}, nil
}
