package victorialogs

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/permit"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// Settings say where the server is, and which part of it each tenant sees. The tags make settings of the
// fields: see package config.
type Settings struct {
	Source   Location `name:"source" default:"" placeholder:"victorialogs=URL" help:"A further source of log lines for LogQL: victorialogs=http://HOST:9428 is a VictoriaLogs server, or the vlselect of a cluster. Its lines and those of this process are answered together. Empty: none."`
	Accounts Accounts `name:"victorialogs.accounts" default:"" placeholder:"TENANT=ACCOUNT[:PROJECT],..." help:"Which AccountID and ProjectID of VictoriaLogs each tenant reads, separated by commas. A tenant that is not in the list sees no line of VictoriaLogs. Empty: only the tenant anonymous does, that of account 0 and project 0."`
	Filters  Filters  `name:"victorialogs.extra-filters" default:"" placeholder:"TENANT=FILTER;..." help:"Filters of LogsQL, such as team-a={env=\"prod\"}, separated by semicolons. A tenant of the list sees only those lines of its account that pass its filter."`
	// Authorization is the file with the credentials.
	Authorization string `name:"victorialogs.authorization-file" default:"" placeholder:"FILE" help:"File with the value of the header Authorization for requests to VictoriaLogs, such as Bearer TOKEN. It is read for each request, so a new file takes effect at once. Empty: no credentials."`
	Requests      int    `name:"victorialogs.max-requests" type:"count" default:"16" placeholder:"N" min:"1" max:"1024" help:"Most requests to VictoriaLogs at one time, and fewer while it is slow or refuses. Further requests wait in a queue that is fair to tenants."`
	// CheckEvery is how long a count of lines holds.
	CheckEvery time.Duration `name:"victorialogs.check-every" type:"time" default:"10s" placeholder:"TIME" min:"1s" max:"5m" help:"How long kept results and answers over lines of VictoriaLogs are used before Shale checks for late or deleted lines. A check is one request that counts lines in windows of five minutes."`
}

// Location is where a server is; the zero value is nowhere.
type Location = permit.Location

// At returns the location of a server.
func At(url string) Location { return permit.At(url) }

// Account names a part of a VictoriaLogs server that is apart from all others.
type Account = watch.Account

// Accounts say which account a tenant reads. They never change.
type Accounts struct{ of map[string]Account }

// UnmarshalText reads a list such as "team-a=1:2,team-b=3".
func (a *Accounts) UnmarshalText(text []byte) error {
	if a.of = nil; len(text) == 0 {
		return nil
	}
	of := map[string]Account{}
	for _, item := range strings.Split(string(text), ",") {
		tenant, id, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("%w: %q is not of the form TENANT=ACCOUNT[:PROJECT]", model.ErrInvalid, item)
		}
		if err := model.CheckTenant(tenant); err != nil {
			return err
		}
		account, project, _ := strings.Cut(id, ":")
		var all [2]uint32
		for i, number := range []string{account, project} {
			if i == 1 && !strings.Contains(id, ":") {
				break
			}
			n, err := strconv.ParseUint(number, 10, 32)
			if err != nil {
				return fmt.Errorf("%w: %q has the number %q, which is not between 0 and 4294967295", model.ErrInvalid, item, number)
			}
			all[i] = uint32(n)
		}
		if _, twice := of[tenant]; twice {
			return fmt.Errorf("%w: tenant %s has two accounts", model.ErrInvalid, tenant)
		}
		of[tenant] = Account{ID: all[0], Project: all[1]}
	}
	a.of = of
	return nil
}

// MarshalText returns the form that UnmarshalText reads.
func (a Accounts) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String returns the list, by tenant.
func (a Accounts) String() string {
	var out []string
	for _, tenant := range sortedKeys(a.of) {
		x := a.of[tenant]
		out = append(out, fmt.Sprintf("%s=%d:%d", tenant, x.ID, x.Project))
	}
	return strings.Join(out, ",")
}

// Equal reports whether two lists are the same.
func (a Accounts) Equal(o Accounts) bool {
	return (a.of == nil) == (o.of == nil) && maps.Equal(a.of, o.of)
}

// tenantsOf returns the tenants that read an account.
func (a Accounts) tenantsOf(x Account) (all []string) {
	if a.of == nil && x == (Account{}) {
		return []string{model.DefaultTenant}
	}
	for _, tenant := range sortedKeys(a.of) {
		if a.of[tenant] == x {
			all = append(all, tenant)
		}
	}
	return all
}

// Of returns the account of a tenant, and whether it has one.
func (a Accounts) Of(tenant string) (Account, bool) {
	if a.of == nil {
		return Account{}, tenant == model.DefaultTenant
	}
	x, ok := a.of[tenant]
	return x, ok
}
