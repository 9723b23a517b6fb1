package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The roles of a process.
const (
	RoleAll     = "all"
	RoleGateway = "gateway"
	RoleIngest  = "ingest"
	RoleQuery   = "query"
	RoleCompact = "compact"
)

// Settings of roles that have Kafka's prefix.
const (
	partitionsSetting = "kafka.partitions"
	groupSetting      = "kafka.group"
	shipSetting       = "ship"
)

// Roles has the settings of processes that have not the role all.
type Roles struct {
	Partitions   string        `name:"kafka.partitions" default:"" placeholder:"N-M,..." help:"Partitions of kafka.topic that this process ingests, such as 0-7 or 0,2,4-7: each belongs to one process with the role ingest. Empty: the processes of kafka.group divide them. Other roles do not use it."`
	Group        string        `name:"kafka.group" default:"" placeholder:"NAME" help:"Consumer group whose members, the processes with the role ingest, divide the partitions of kafka.topic. The suffix -2 is added for the second topic, and so on. Empty: the topic name with the suffix -ingest. With ship=off or standby, the suffix -off or -standby follows. It is not used with kafka.partitions."`
	Ship         string        `name:"ship" default:"on" placeholder:"on|off|standby" help:"Whether the role ingest ships rows to the bucket. With off, it only holds rows for queries, until other processes have shipped them. With standby, it begins to ship a partition when no other process has shipped it for three times ship-every. Processes with off, and those with standby, are groups of their own: their kafka.group has -off or -standby after its name."`
	Zone         string        `name:"zone" default:"" placeholder:"NAME" help:"Zone in which this process runs, such as a data center. If several ingesters hold a partition, the role query prefers one in its own zone."`
	Ingesters    string        `name:"ingesters" default:"" placeholder:"HOST:PORT,..." help:"Addresses of the processes with the role ingest (their http-listen), separated by commas. The role query asks them for rows that are not in the bucket yet. dns+HOST:PORT stands for all addresses of a name."`
	PeerToken    string        `name:"ingesters-token-file" default:"" placeholder:"FILE" help:"File whose first line is the token that the role query sends to ingesters. They must give it the right peer. It is read again within 10 s. Empty: none."`
	PeerTLS      Switch        `name:"ingesters-tls" default:"off" placeholder:"on|off" help:"Use HTTPS for requests to ingesters."`
	PeerCA       string        `name:"ingesters-tls-ca-file" default:"" placeholder:"FILE" help:"Certificates in PEM of the authorities that the certificates of ingesters are checked against. Empty: those of the system."`
	ShipEvery    time.Duration `name:"ship-every" type:"time" default:"10m" placeholder:"TIME" min:"1s" max:"1h" help:"How often the role ingest ships all rows of a partition to the bucket. After the loss of its disk, the next owner reads the rows of this time from Kafka again."`
	ShipAtStop   Switch        `name:"ship-at-stop" default:"off" placeholder:"on|off" help:"Ship all rows to the bucket when a process with the role all stops, so that roles on other machines can continue from the bucket. The stop takes longer, and blocks are smaller."`
	Gateways     int           `name:"gateways" type:"count" default:"1" placeholder:"N" min:"1" max:"10000" help:"How many processes with the role gateway share the writes. Each grants a tenant its part of the limits on rates."`
	LabelRefresh time.Duration `name:"label-refresh" type:"time" default:"1h" placeholder:"TIME" min:"1m" max:"1d" help:"How often a gateway sends the labels of an active series to Kafka. The new owner of a partition reads the labels of this time from the bucket, so all processes must have the same value."`
}

// RoleList returns the roles of the process.
func (c *Config) RoleList() []string { return list(c.Role) }

// Has reports whether the process has a role by name. The role all is only itself.
func (c *Config) Has(role string) bool { return slices.Contains(c.RoleList(), role) }

// IngesterList returns the addresses of ingesters.
func (r *Roles) IngesterList() []string { return list(r.Ingesters) }

// PartitionList returns the partitions of this process, ascending.
func (r *Roles) PartitionList() ([]int32, error) {
	var all []int32
	for _, part := range list(r.Partitions) {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("%q is neither a partition nor a range of them; write 3, 0-7 or 0,2,4-7", part)
		}
		for p := from; p <= to; p++ {
			all = append(all, int32(p))
		}
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			return nil, fmt.Errorf("partition %d is named twice", all[i])
		}
	}
	return all, nil
}

// GroupName returns the group whose members divide the partitions of an epoch. Members have the topics of
// their epoch alone, so that each epoch has a group of its own. So have processes that do not ship, whatever
// their settings are: in the group of those that do, they would take partitions that no one ships then.
func (c *Config) GroupName(epoch uint64, topic string) string {
	name := c.Roles.Group
	switch {
	case name == "":
		name = topic + "-ingest"
	case epoch > 1:
		name = fmt.Sprintf("%s-%d", name, epoch)
	}
	if c.Roles.Ship != "on" {
		name += "-" + c.Roles.Ship
	}
	return name
}

// list splits a list at commas.
func list(s string) (all []string) {
	for x := range strings.SplitSeq(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			all = append(all, x)
		}
	}
	return all
}

// rolesRules returns the rules for the settings of roles.
func rolesRules() []rule {
	return []rule{
		{"role", roleRule},
		{partitionsSetting, func(c *Config) error {
			_, err := c.Roles.PartitionList()
			return err
		}},
		{groupSetting, func(c *Config) error {
			if c.Roles.Group != "" && c.Roles.Partitions != "" {
				return fmt.Errorf("%s would not be used: %s is set", c.Roles.Group, partitionsSetting)
			}
			return nil
		}},
		{shipSetting, shipRule},
		{"ingesters", func(c *Config) error {
			for _, a := range c.Roles.IngesterList() {
				if err := peerAddress(a); err != nil {
					return err
				}
			}
			return nil
		}},
		{"ingesters-tls-ca-file", func(c *Config) error {
			if c.Roles.PeerCA != "" && !c.Roles.PeerTLS.On() {
				return fmt.Errorf("%s would not be used: ingesters-tls is off", c.Roles.PeerCA)
			}
			return nil
		}},
	}
}

// shipRule refuses what would not be carried out. One file may serve all roles, so that others than ingest
// may have it.
func shipRule(c *Config) error {
	switch c.Roles.Ship {
	case "on":
		return nil
	case "off", "standby":
	default:
		return fmt.Errorf("%q is unknown; there are on, off and standby", c.Roles.Ship)
	}
	if c.Has(RoleAll) {
		return fmt.Errorf("%s would not be carried out: the role all takes its rows to the bucket itself, and ship is for the role ingest", c.Roles.Ship)
	}
	return nil
}

// peerAddress checks the address of another process, or the name of several.
func peerAddress(a string) error {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(a, "dns+"))
	if n, err2 := strconv.ParseUint(port, 10, 16); err != nil || err2 != nil || host == "" || n == 0 {
		return fmt.Errorf("%q is not an address; write HOST:PORT, or dns+HOST:PORT for all addresses of a name", a)
	}
	return nil
}

// roleRule refuses roles that do not exist, and those that lack what they need.
func roleRule(c *Config) error {
	all := c.RoleList()
	if len(all) == 0 {
		return notEmpty("")
	}
	for i, r := range all {
		switch r {
		case RoleAll:
			if len(all) > 1 {
				return errors.New("all stands alone: it needs no other role")
			}
			return nil
		case RoleGateway, RoleIngest, RoleQuery, RoleCompact:
		default:
			return fmt.Errorf("%q is unknown; there are all, gateway, ingest, query and compact", r)
		}
		if slices.Contains(all[:i], r) {
			return fmt.Errorf("%s is named twice", r)
		}
		if r != RoleCompact && len(c.Kafka.Connection().Brokers) == 0 {
			return fmt.Errorf("%s requires kafka.brokers", r)
		}
	}
	switch {
	case c.Bucket == "":
		return errors.New("bucket must be set: all roles share it, and the default is a folder of this process alone")
	case c.Has(RoleQuery) && len(c.Roles.IngesterList()) == 0:
		return errors.New("query requires ingesters")
	}
	return nil
}
