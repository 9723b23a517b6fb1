package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestReserve(t *testing.T) {
	addrs, err := Reserve(300)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, addr := range addrs {
		if seen[addr] {
			t.Errorf("%s was given out twice", addr)
		}
		seen[addr] = true
		_, text, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		if port, err := strconv.Atoi(text); err != nil || port < lowest || ephemeral() >= lowest+1000 && port >= ephemeral() {
			t.Errorf("%s: the kernel chooses from %d", addr, ephemeral())
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Error(err)
			continue
		}
		l.Close()
	}
	// No port is reserved twice, and running out of ports is an error.
	if _, err := reserve(2000, lowest+1000); err == nil {
		t.Error("2,000 addresses of 1,000 ports")
	}
	if _, err := reserve(1, 1024); err != nil {
		t.Errorf("with all ports the kernel's: %v", err)
	}
}

func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, addr := range []string{l.Addr().String(), u.LocalAddr().String()} {
		if free(addr) == nil {
			t.Errorf("%s is in use", addr)
		}
	}
}
