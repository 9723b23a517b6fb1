package route

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/carbonconf"
)

// Destination is a carbon that points are relayed to.
type Destination struct {
	Host     string
	Port     int
	Instance string // empty: it has none
}

// Address returns host:port.
func (d Destination) Address() string { return net.JoinHostPort(d.Host, strconv.Itoa(d.Port)) }

// String returns the destination as carbon.conf has it: host:port or host:port:instance.
func (d Destination) String() string {
	if d.Instance == "" {
		return d.Address()
	}
	return d.Address() + ":" + d.Instance
}

// mostDestinations bounds the memory of their queues.
const mostDestinations = 128

// parseDestinations parses a list such as 10.0.0.1:2004:a, [::1]:2004.
func parseDestinations(text string) (all []Destination, err error) {
	for one := range strings.SplitSeq(text, ",") {
		d, err := parseDestination(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if len(all) > mostDestinations {
		return nil, fmt.Errorf("%d destinations are too many: must be at most %d", len(all), mostDestinations)
	}
	return all, nil
}

func parseDestination(text string) (d Destination, err error) {
	wrong := fmt.Errorf("expected a destination such as 10.0.0.1:2004 or 10.0.0.1:2004:a, found %q", carbonconf.Short(text))
	host, rest, ok := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		host, rest, ok = strings.Cut(text[1:], "]:")
	}
	port, instance, _ := strings.Cut(rest, ":")
	if d.Port, err = strconv.Atoi(strings.TrimSpace(port)); !ok || err != nil || d.Port < 1 || d.Port > 65535 {
		return d, wrong
	}
	d.Host, d.Instance = host, instance
	if host == "" || !isPlain(host) || !isPlain(instance) {
		return d, wrong
	}
	return d, nil
}

// isPlain reports whether a text has the characters of hosts alone. Others would need the quotes of Python
// where a hash is made of the text.
func isPlain(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(".-_:", c) {
			return false
		}
	}
	return true
}
