package victorialogs

import "github.com/shaledb/shale/internal/read/victorialogs/permit"

// access is what a tenant may read: an account, and of that what passes a filter, if there is one.
type access struct {
	Account
	filter string
}

// accessOf returns what a tenant may read, and whether that is anything.
func (s *Settings) accessOf(tenant string) (access, bool) {
	a, ok := s.Accounts.Of(tenant)
	return access{a, s.Filters.Of(tenant)}, ok
}

// Filters are the filters of tenants. They never change.
type Filters = permit.Filters
