package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
)

// lowest is the first port to reserve: lower ports belong to known services.
const lowest = 10_000

// held keeps the marks of the ports that this process has reserved.
var held struct {
	sync.Mutex
	marks []net.Listener
}

// Reserve returns n addresses 127.0.0.1:port without a TCP or UDP listener. No other process can reserve them
// before this one ends.
//
// The ports are below the kernel's ephemeral range. A port from that range (listen on port 0, close) may be
// taken by any process before the server listens on it, and parallel tests use thousands of them.
func Reserve(n int) ([]string, error) {
	return reserve(n, ephemeral())
}

// ephemeral returns the first port of the kernel's ephemeral range.
func ephemeral() (first int) {
	first = 32_768 // the default of Linux
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first)
	}
	return first
}

func reserve(n, below int) ([]string, error) {
	if below < lowest+1000 {
		// No port is left below; a port in the ephemeral range is better than none.
		below = 60_000
	}
	addrs := make([]string, 0, n)
	var why error // why the last port is not free
	for tries := 0; len(addrs) < n; tries++ {
		if tries == 100*(n+1) {
			return nil, fmt.Errorf("found no free port from %d to %d: %w", lowest, below-1, why)
		}
		port := lowest + rand.IntN(below-lowest)
		// An abstract socket belongs to the network namespace of the port, and disappears with its process.
		mark, err := net.Listen("unix", fmt.Sprintf("@shale-port-%d", port))
		if err != nil {
			why = err
			continue
		}
		addr := fmt.Sprint("127.0.0.1:", port)
		if why = free(addr); why != nil {
			mark.Close()
			continue
		}
		held.Lock()
		held.marks = append(held.marks, mark)
		held.Unlock()
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// free returns nil if an address has no listener.
func free(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	return u.Close()
}
