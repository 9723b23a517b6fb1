package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Filters are the filters of tenants. They never change.
type Filters struct{ of map[string]string }

// Of returns the filter of a tenant, or "".
func (f Filters) Of(tenant string) string { return f.of[tenant] }

// UnmarshalText reads a list such as `team-a={env="prod"};team-b=level:error`.
func (f *Filters) UnmarshalText(text []byte) error {
	if f.of = nil; len(text) == 0 {
		return nil
	}
	of := map[string]string{}
	for _, item := range splitOutsideQuotes(string(text)) {
		tenant, filter, ok := strings.Cut(item, "=")
		filter = strings.TrimSpace(filter)
		if !ok || filter == "" {
			return fmt.Errorf("%w: %q is not of the form TENANT=FILTER", model.ErrInvalid, item)
		}
		if err := model.CheckTenant(tenant); err != nil {
			return err
		}
		if _, twice := of[tenant]; twice {
			return fmt.Errorf("%w: tenant %s has two filters", model.ErrInvalid, tenant)
		}
		of[tenant] = filter
	}
	f.of = of
	return nil
}

// splitOutsideQuotes cuts a text at semicolons that are in no quotes of LogsQL.
func splitOutsideQuotes(s string) (parts []string) {
	begin, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == ';':
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}

// MarshalText returns the form that UnmarshalText reads.
func (f Filters) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String returns the list, by tenant.
func (f Filters) String() string {
	var out []string
	for _, tenant := range slices.Sorted(maps.Keys(f.of)) {
		out = append(out, tenant+"="+f.of[tenant])
	}
	return strings.Join(out, ";")
}

// Equal reports whether two lists are the same.
func (f Filters) Equal(o Filters) bool { return maps.Equal(f.of, o.of) }
