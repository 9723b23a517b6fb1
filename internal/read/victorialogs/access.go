package victorialogs

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// access is what a tenant may read: an account, and of that what passes a filter, if there is one.
type access struct {
	Account
	filter string
}

// accessOf returns what a tenant may read, and whether that is anything.
func (s *Settings) accessOf(tenant string) (access, bool) {
	a, ok := s.Accounts.Of(tenant)
	return access{a, s.Filters.of[tenant]}, ok
}

// Filters are the filters of tenants. They never change.
type Filters struct{ of map[string]string }

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
	for _, tenant := range sortedKeys(f.of) {
		out = append(out, tenant+"="+f.of[tenant])
	}
	return strings.Join(out, ";")
}

// Equal reports whether two lists are the same.
func (f Filters) Equal(o Filters) bool { return maps.Equal(f.of, o.of) }

// maxCredentialBytes bounds the file of credentials.
const maxCredentialBytes = 16 << 10

// credentials reads the file with the value of the header Authorization. It is read for each request, which
// costs little next to the request, so that a new file counts at once.
func credentials(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	unusable := func(why any) error {
		return fmt.Errorf("%w: the file of victorialogs.authorization-file, %s, cannot be used, so VictoriaLogs is not asked: %v", model.ErrTransient, path, why)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", unusable(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCredentialBytes+1))
	switch text = bytes.TrimSpace(text); {
	case err != nil:
		return "", unusable(err)
	case len(text) == 0:
		return "", unusable("it is empty")
	case len(text) > maxCredentialBytes:
		return "", unusable(fmt.Sprintf("it has more than %d bytes", maxCredentialBytes))
	case bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", unusable("it must be one line of printable ASCII, such as Bearer TOKEN")
	}
	return string(text), nil
}
