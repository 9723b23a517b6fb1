package logql

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TenantLabel is the label that lines and streams get in answers for several tenants. A stream that has one
// of its own shows it under the name original___tenant_id__.
const TenantLabel = "__tenant_id__"

const originalPrefix = "original_"

// selectors are the matchers of a query for each of its tenants. Those of the tenant's label choose tenants,
// if there are several; the others apply to streams.
func selectors(matchers []*syntax.Matcher, tenants []string) (chosen []string, ms []model.Matcher) {
	ms = syntax.Models(matchers)
	if len(tenants) < 2 {
		return tenants, ms
	}
	return chooseTenants(ms, tenants)
}

func chooseTenants(ms []model.Matcher, tenants []string) (chosen []string, rest []model.Matcher) {
	chosen = slices.Clone(tenants)
	for _, m := range ms {
		switch m.Name {
		case TenantLabel:
			chosen = slices.DeleteFunc(chosen, func(t string) bool { return !m.Match(t) })
			continue
		case originalPrefix + TenantLabel:
			m.Name = TenantLabel
		}
		rest = append(rest, m)
	}
	return chosen, rest
}

// appendPair appends a label in the form of model.Labels, whose value may be empty here.
func appendPair(dst, name, value []byte) []byte {
	size := 2 + uvarintLen(len(name)) + len(name) + uvarintLen(len(value)) + len(value)
	dst = binary.AppendUvarint(append(dst, 0x0a), uint64(size))
	dst = binary.AppendUvarint(append(dst, 0x0a), uint64(len(name)))
	dst = append(dst, name...)
	dst = binary.AppendUvarint(append(dst, 0x12), uint64(len(value)))
	return append(dst, value...)
}

func uvarintLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }
