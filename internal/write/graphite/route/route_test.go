package route

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
)

func parse(path, text string) (*carbonconf.File, error) { return carbonconf.Parse(path, []byte(text)) }

// parseBoth parses a carbon.conf and a relay-rules.conf.
func parseBoth(conf, rules string) (*Router, error) {
	f, err := parse("carbon.conf", conf)
	if err != nil {
		return nil, err
	}
	c, err := ParseConf(f, "")
	if err != nil {
		return nil, err
	}
	if f, err = parse("relay-rules.conf", rules); err != nil {
		return nil, err
	}
	return c.Router(f, func(string) ([]string, error) { return nil, nil })
}

// TestInstance: the section of an instance goes before that of all instances, key by key.
func TestInstance(t *testing.T) {
	f, err := parse("carbon.conf", "[relay]\nDESTINATIONS = a:1\nDESTINATION_PROTOCOL = line\nREPLICATION_FACTOR = 2\nRELAY_METHOD = consistent-hashing\n"+
		"[relay:b]\nDESTINATIONS = b:1, c:1\n[relay:c]\nREPLICATION_FACTOR = 0\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConf(f, "b")
	if err != nil || len(c.Destinations) != 2 || c.Destinations[0].String() != "b:1" || c.Protocol != Line || c.replication != 2 {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = ParseConf(f, ""); err != nil || len(c.Destinations) != 1 {
		t.Errorf("without an instance: %+v, %v", c, err)
	}
	for instance, want := range map[string]string{
		"c": "carbon.conf:9: [relay:c]: REPLICATION_FACTOR: expected a number of copies from 1, found \"0\"", "d": "carbon.conf has no section [relay:d]",
	} {
		if _, err := ParseConf(f, instance); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("instance %s: %v, want %s", instance, err, want)
		}
	}
}

func TestConf(t *testing.T) {
	r, err := parseBoth(`[cache]
DESTINATIONS = not looked at
[relay]
destinations = 10.0.0.1:2004:a,
   [::1]:2003, carbon:2004:b
DESTINATION_PROTOCOL = line
DESTINATION_TRANSPORT = ssl
DESTINATION_SSL_CA = /etc/ca.pem
RELAY_RULES = other.conf
DESTINATION_POOL_REPLICAS = False
`, "[default]\ndefault = true\nservers = [::1]:2003\n")
	if err != nil {
		t.Fatal(err)
	}
	c := r.Conf()
	if c.Protocol != Line || !c.TLS || c.CA != "/etc/ca.pem" || c.RelayRules != "other.conf" || c.AggregationRules != "" {
		t.Errorf("got %+v", c)
	}
	var texts []string
	for _, d := range c.Destinations {
		texts = append(texts, d.String())
	}
	if want := []string{"10.0.0.1:2004:a", "[::1]:2003", "carbon:2004:b"}; !slices.Equal(texts, want) {
		t.Errorf("destinations %q, want %q", texts, want)
	}
	if to, err := r.Route("x"); err != nil || !slices.Equal(to, []int{1}) {
		t.Errorf("the default goes to %v, error %v", to, err)
	}
}

func TestRefuses(t *testing.T) {
	const relay, def = "[relay]\nDESTINATIONS = a:1:x, b:2\n", "[d]\ndefault = true\ndestinations = b:2\n"
	for _, c := range []struct{ conf, rules, want string }{
		{"[cache]\n", def, "carbon.conf has no section [relay]"},
		{"[relay]\n", def, "carbon.conf:1: [relay]: DESTINATIONS is missing"},
		{"[relay]\nDESTINATIONS = a\n", def, `carbon.conf:2: [relay]: DESTINATIONS: expected a destination such as 10.0.0.1:2004 or 10.0.0.1:2004:a, found "a"`},
		{"[relay]\nDESTINATIONS = a:b\n", def, `found "a:b"`},
		{"[relay]\nDESTINATIONS = a:65536\n", def, `found "a:65536"`},
		{"[relay]\nDESTINATIONS = a:1,\n", def, `found ""`},
		{"[relay]\nDESTINATIONS = it's:1\n", def, `found "it's:1"`},
		{"[relay]\nDESTINATIONS = [::1:1\n", def, `found "[::1:1"`},
		{"[relay]\nDESTINATIONS = a:1" + strings.Repeat(", a:1", 128) + "\n", def, "129 destinations are too many: must be at most 128"},
		{"[relay]\nDESTINATIONS = a:1, a:1\n", def, "a:1 is listed twice"},
		{"[relay]\nRELAY_METHOD = consistent-hashing\nDESTINATIONS = a:1, a:2\n", def, "carbon.conf:3: [relay]: DESTINATIONS: a:2 is listed twice; hashes distinguish"},
		{relay + "RELAY_METHOD = round-robin\n", def, "carbon.conf:3: [relay]: RELAY_METHOD: expected one of [rules consistent-hashing"},
		{relay + "DESTINATION_PROTOCOL = udp\n", def, `DESTINATION_PROTOCOL: expected one of [pickle line protobuf], found "udp"`},
		{relay + "REPLICATION_FACTOR = 0\n", def, `REPLICATION_FACTOR: expected a number of copies from 1, found "0"`},
		{relay + "DIVERSE_REPLICAS = maybe\n", def, `DIVERSE_REPLICAS: expected True or False, found "maybe"`},
		{relay + "DESTINATION_POOL_REPLICAS = True\n", def, `DESTINATION_POOL_REPLICAS: it is not supported: expected False, found "True"`},
		{relay, "", "relay-rules.conf: no section has default = true"},
		{relay, "[a]\npattern = x\n", "relay-rules.conf:1: [a]: destinations is missing"},
		{relay, "[a]\ndefault = true\ndestinations = c:1\n", "relay-rules.conf:3: [a]: destinations: c:1 is not one of DESTINATIONS in carbon.conf"},
		{relay, "[a]\ndefault = true\ndestinations = a:1\n", "a:1 is not one of DESTINATIONS"},
		{relay, "[a]\ndestinations = b:2\n", "[a]: expected pattern or default"},
		{relay, "[a]\npattern = x\ndefault = true\ndestinations = b:2\n", "relay-rules.conf:3: [a]: the section has both pattern and default"},
		{relay, "[a]\npattern = (\ndestinations = b:2\n", "relay-rules.conf:2: [a]: pattern: "},
		{relay, "[a]\npattern = x\ncontinue = 2\ndestinations = b:2\n", "relay-rules.conf:3: [a]: continue: expected True or False"},
		{relay, def + "[e]\ndefault = true\ndestinations = b:2\n", "relay-rules.conf:4: [e]: there is another section with default = true"},
	} {
		if _, err := parseBoth(c.conf, c.rules); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q %q: error %v, want %s", c.conf, c.rules, err, c.want)
		}
	}
}

// FuzzRoute: whatever is parsed routes each path to destinations that exist, each once.
func FuzzRoute(f *testing.F) {
	f.Add("[relay]\nDESTINATIONS = a:1, b:2:x\n", "[d]\ndefault = true\ndestinations = a:1\n[e]\npattern = x\ncontinue = yes\ndestinations = b:2:x, a:1\n", "x.y")
	f.Add("[relay]\nDESTINATIONS = a:1:x, a:2:y\nRELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = 2\nROUTER_HASH_TYPE = mmh3_ch\n", "", "")
	f.Add("[relay]\nDESTINATIONS = [::1]:1\nRELAY_METHOD = fast-hashing\nDIVERSE_REPLICAS = 0\n", "", "a")
	f.Fuzz(func(t *testing.T, conf, rules, path string) {
		if len(conf)+len(rules)+len(path) > 1<<12 {
			return
		}
		r, err := parseBoth(conf, rules)
		if err != nil {
			return
		}
		to, err := r.Route(path)
		if err != nil {
			return // a hostile expression
		}
		for i, n := range to {
			if n < 0 || n >= len(r.c.Destinations) || i > 0 && to[i-1] >= n {
				t.Errorf("destinations %v of %d", to, len(r.c.Destinations))
			}
		}
	})
}
