package peerhost

import (
	"net"
	"net/netip"
	"testing"
)

// TestOf: an IPv6 network of 64 bits is one host, and so is an IPv4 address in any form.
func TestOf(t *testing.T) {
	for _, c := range []struct{ at, want string }{
		{"192.0.2.7:1", "192.0.2.7"}, {"[::ffff:192.0.2.7]:1", "192.0.2.7"}, {"192.0.2.8:1", "192.0.2.8"},
		{"[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::"}, {"[2001:db8:1:2::]:9", "2001:db8:1:2::"}, {"[2001:db8:1:3::]:1", "2001:db8:1:3::"},
		{"[fe80::1%eth0]:1", "fe80::"},
	} {
		if got := Of(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.at))); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %s, want %s", c.at, got, c.want)
		}
	}
	if got := Of(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("of a path: %s", got)
	}
}
