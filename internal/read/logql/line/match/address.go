package match

import (
	"fmt"
	"net/netip"
	"strings"
	"unsafe"
)

// AddressTest looks for an IP address within bounds, anywhere in a text.
type AddressTest struct {
	from, to netip.Addr
	// prefix, if valid, is meant instead: an IPv4 address that is written as an IPv6 one is in none of IPv4.
	prefix netip.Prefix
}

// NewAddressTest compiles an address, a CIDR, or a range of addresses: 10.0.0.1-10.0.0.9.
func NewAddressTest(s string) (*AddressTest, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return &AddressTest{from: a, to: a}, nil
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return &AddressTest{prefix: p}, nil
	}
	first, last, ok := strings.Cut(s, "-")
	from, err1 := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if !ok || err1 != nil || err2 != nil || from.BitLen() != to.BitLen() || to.Less(from) {
		return nil, fmt.Errorf("ip: invalid pattern: %q", s)
	}
	return &AddressTest{from: from.WithZone(""), to: to.WithZone("")}, nil
}

func (t *AddressTest) contains(a netip.Addr) bool {
	switch {
	case t.prefix.IsValid():
		return t.prefix.Contains(a)
	case t.from == t.to:
		return a == t.from
	}
	return a.Zone() == "" && a.Is4() == t.from.Is4() && !a.Less(t.from) && !t.to.Less(a)
}

// Matches tries what begins like an address: up to three digits and a dot, or up to four hexadecimal digits
// and a colon. It does not look again at bytes that it has tried, nor at the byte after them.
func (t *AddressTest) Matches(line []byte) bool {
	for i := 0; i < len(line); i++ {
		var n int
		switch {
		case beginsIPv4(line[i:]):
			n = span(line[i:], false)
		case beginsIPv6(line[i:]):
			n = span(line[i:], true)
		default:
			continue
		}
		if a, err := netip.ParseAddr(unsafe.String(&line[i], n)); err == nil && t.contains(a) {
			return true
		}
		i += n
	}
	return false
}

func beginsIPv4(b []byte) bool {
	return len(b) > 3 && isDecimal(b[0]) && (b[1] == '.' || b[2] == '.' || b[3] == '.')
}

func beginsIPv6(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	if b[0] == ':' {
		return b[1] == ':' && isHex(b[2])
	}
	for i := 0; i < 5; i++ {
		if b[i] == ':' {
			return i > 0
		}
		if !isHex(b[i]) {
			return false
		}
	}
	return false
}

// span is how many bytes from the first on an address can be made of.
func span(b []byte, v6 bool) int {
	for i, c := range b {
		if !isDecimal(c) && c != '.' && !(v6 && (isHex(c) || c == ':')) {
			return i
		}
	}
	return len(b)
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
