package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
)

// lowest is the first port that is given out: those below belong to known services.
const lowest = 10_000

// held keeps the marks of the ports that this process has given out.
var held struct {
	sync.Mutex
	marks []net.Listener
}

// Reserve returns n addresses 127.0.0.1:port on which nobody listens, by TCP or UDP, and which it gives to no other process
// before this one ends.
//
// The ports lie below those that the kernel takes for connections and for listeners that leave it the choice. A port that the
// kernel chose and that is let go for the server (listen on port 0, close) is anybody's until the server has it, and tests
// that run side by side take thousands.
func Reserve(n int) ([]string, error) {
	return reserve(n, ephemeral())
}

// ephemeral returns the first port of the range that the kernel chooses from.
func ephemeral() (first int) {
	first = 32_768 // of Linux, unless told otherwise
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first)
	}
	return first
}

func reserve(n, below int) ([]string, error) {
	if below < lowest+1000 {
		// Nothing is left below: a port that the kernel may take too is better than none.
		below = 60_000
	}
	addrs := make([]string, 0, n)
	var why error // the last port was not to be had
	for tries := 0; len(addrs) < n; tries++ {
		if tries == 100*(n+1) {
			return nil, fmt.Errorf("found no free port from %d to %d: %w", lowest, below-1, why)
		}
		port := lowest + rand.IntN(below-lowest)
		// An abstract socket is known in the same network namespace as the port, and gone with its process.
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

// free returns nil if nobody listens on an address.
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
