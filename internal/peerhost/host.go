package peerhost

import (
	"net"
	"net/netip"
)

// Of returns a TCP address without the port; without any, the zero address. A machine may have all addresses
// of an IPv6 network of 64 bits, so these are one host. An IPv4 address is the same in both forms.
func Of(at net.Addr) netip.Addr {
	tcp, _ := at.(*net.TCPAddr)
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is6() {
		network, _ := addr.Prefix(64)
		return network.Addr()
	}
	return addr
}
