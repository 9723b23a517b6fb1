package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/groups"
	"github.com/shaledb/shale/internal/write/logs"
)

// MaxTenantSections bounds the tenants of a file. Each takes about a kilobyte of memory, and more with
// retention or rules of its own.
const MaxTenantSections = 65_535

// Tenants are the settings of all tenants. They never change.
type Tenants struct {
	others    *Tenant
	by        map[string]*Tenant
	retention *retention.Rules
}

// Tenant is what the rooms obey for one tenant.
type Tenant struct {
	Write  write.Limits
	Head   head.TenantLimits
	Groups groups.Limits
	Lines  logs.Rules
	Query  api.Limits
	Bill   bill.Limits
}

// Of returns the settings of a tenant. The result is shared, and never changed.
func (t *Tenants) Of(tenant string) *Tenant {
	if own := t.by[tenant]; own != nil {
		return own
	}
	return t.others
}

// Retention returns the rules of retention for all tenants, or nil if there is no file of tenants.
func (t *Tenants) Retention() *retention.Rules { return t.retention }

// Len returns the number of tenants that have a section of their own.
func (t *Tenants) Len() int { return len(t.by) }

// EveryTenant returns the settings of a configuration, the same for all tenants.
func (c *Config) EveryTenant() *Tenants { return &Tenants{others: c.tenant()} }

// tenant copies what counts for a tenant out of a configuration whose shares are resolved.
func (c *Config) tenant() *Tenant {
	t := &Tenant{Write: c.Write, Head: c.Head.Tenant, Groups: c.Groups, Lines: c.lineRules(), Query: c.Query, Bill: c.Bill}
	t.Write.MaxAge, t.Write.AgeSetting = c.OldestAge()
	if c.MemoryBytes > 0 {
		t.Query.MaxBytes = c.QueryBytes.Of(c.MemoryBytes)
	}
	return t
}

// lineRules returns the rules for received lines.
func (c *Config) lineRules() logs.Rules {
	r := logs.DefaultRules()
	r.Limits = c.LogLines
	r.LabelLimits = logs.LabelLimits{MaxLabels: c.Write.MaxLabels, MaxNameBytes: c.Write.MaxNameBytes, MaxValueBytes: c.Write.MaxValueBytes}
	r.DetectLevels = c.Lines.DetectLevels.On()
	if !c.Lines.ServiceName.On() {
		r.ServiceNames = nil
	}
	return r
}

// TenantSettings returns the names of the settings that a tenant may have of its own, sorted.
func TenantSettings() []string {
	var names []string
	for _, s := range Settings() {
		if s.ofTenant {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ParseTenants reads a file of settings of tenants. What the file does not set is as in the configuration.
// The section defaults counts for all tenants, and a section below tenants for one. One error of class
// [model.ErrInvalid] reports all mistakes, each in a line that begins with its position.
func ParseTenants(path string, text []byte, c *Config) (*Tenants, error) {
	all := &loader{settings: Settings(), origins: Origins{}}
	if len(bytes.TrimSpace(text)) == 0 { // an editor may be writing it
		return nil, fmt.Errorf("%w settings of tenants: %s is empty: expected defaults or tenants", model.ErrInvalid, path)
	}
	root := all.document(path, text)
	t := &Tenants{by: map[string]*Tenant{}}
	sections := map[string]ast.Node{}
	for _, v := range all.pairs(path, "the file", root) {
		switch key := v.Key.GetToken(); key.Value {
		case "defaults", "tenants":
			sections[key.Value] = v.Value
		default:
			all.mistakes = append(all.mistakes, fmt.Errorf("%s: unknown section %s: expected defaults or tenants", position(path, key), key.Value))
		}
	}
	base := all.section(path, "defaults", sections["defaults"], c)
	t.others = base.tenant()
	if base.Retention != c.Retention {
		all.checkRest(path, sections["defaults"].GetToken(), &base)
	}
	own := map[string]retention.Own{}
	tenants := all.pairs(path, "tenants", sections["tenants"])
	if len(tenants) > MaxTenantSections {
		all.mistakes = append(all.mistakes, fmt.Errorf("%s: expected at most %d tenants, got %d", path, MaxTenantSections, len(tenants)))
		tenants = nil
	}
	for _, v := range tenants {
		key := v.Key.GetToken()
		if err := model.CheckTenant(key.Value); err != nil {
			all.mistakes = append(all.mistakes, fmt.Errorf("%s: %w", position(path, key), err))
			continue
		}
		c := all.section(path, "tenants."+key.Value, v.Value, &base)
		t.by[key.Value] = c.tenant()
		if c.Retention != base.Retention {
			all.checkRest(path, key, &c)
		}
		if o := (retention.Own{List: c.RetentionRules, Rest: c.Retention}); o.Rest != base.Retention || o.List.String() != base.RetentionRules.String() {
			if o.List.String() == base.RetentionRules.String() {
				o.List = o.List.Of(key.Value)
			}
			own[key.Value] = o
		}
	}
	var err error
	if t.retention, err = retention.CompileAll(base.RetentionRules, base.Retention, own); err != nil {
		all.mistakes = append(all.mistakes, fmt.Errorf("%s: retention and retention-rules: %w", path, err))
	}
	if len(all.mistakes) > 0 {
		return nil, fmt.Errorf("%w settings of tenants:\n%w", model.ErrInvalid, errors.Join(all.mistakes...))
	}
	return t, nil
}

// checkRest checks the retention that a section sets. A slip of the pen in a file that counts at once must
// not drop rows that are a minute old.
func (l *loader) checkRest(path string, at *token.Token, c *Config) {
	if err := retention.CheckRest(c.Retention); err != nil {
		l.mistakes = append(l.mistakes, fmt.Errorf("%s: retention: %w", position(path, at), err))
	}
}

// Shorter returns what is kept for a shorter time than before, at most so many texts such as "team-a: 5d,
// before 30d".
func (t *Tenants) Shorter(before *Tenants, most int) (list []string) {
	add := func(name, tenant string) {
		for _, s := range []model.Signal{model.Metrics, model.Logs} {
			now, was := t.retention.Policy(tenant, s), before.retention.Policy(tenant, s)
			if now.Least < was.Least && len(list) < most {
				list = append(list, fmt.Sprintf("%s of %s: %s, before %s", s, name, retention.Text(now.Least), retention.Text(was.Least)))
			}
		}
	}
	add("tenants without a section", "")
	names := maps.Clone(t.by)
	maps.Copy(names, before.by)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, name)
	}
	return list
}

// section returns a configuration with the settings of a section. Its mistakes go to l, with the name of the
// section.
func (l *loader) section(path, name string, n ast.Node, base *Config) Config {
	own := loader{settings: l.settings, config: *base, origins: Origins{}, inside: name}
	if n != nil {
		if _, empty := n.(*ast.NullNode); !empty {
			own.mapping(path, "", n)
		}
	}
	if len(own.mistakes) == 0 {
		own.validateSet()
	}
	l.mistakes = append(l.mistakes, own.mistakes...)
	return own.config
}

// pairs returns the keys of a map; none if there is no node.
func (l *loader) pairs(path, what string, n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	default:
		l.mistakes = append(l.mistakes, fmt.Errorf("%s: %s must be a map", position(path, n.GetToken()), what))
		return nil
	}
}
