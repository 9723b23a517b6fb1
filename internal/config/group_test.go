package config

import "testing"

// TestGroupName: each epoch has a group, and processes that do not ship never are in that of those that do.
func TestGroupName(t *testing.T) {
	for _, x := range []struct {
		group, ship string
		epoch       uint64
		want        string
	}{
		{"", "on", 1, "t-ingest"}, {"", "on", 2, "t-ingest"}, {"g", "on", 1, "g"}, {"g", "on", 2, "g-2"},
		{"", "off", 1, "t-ingest-off"}, {"g", "off", 1, "g-off"}, {"g", "off", 2, "g-2-off"}, {"g", "standby", 2, "g-2-standby"},
	} {
		c := &Config{Roles: Roles{Group: x.group, Ship: x.ship}}
		if got := c.GroupName(x.epoch, "t"); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}
