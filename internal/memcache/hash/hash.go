package hash

import (
	"fmt"
	"strings"
)

// Picker spreads keys over servers, which have numbers from 0 on. It is safe for concurrent use.
type Picker interface {
	// Pick returns the number of the server of a key.
	Pick(key []byte) int
}

// Kinds are the names of the ways to spread keys.
func Kinds() []string { return []string{"rendezvous", "ketama", "jump"} }

// New returns a picker of a kind. Servers are HOST:PORT, at least one of them. The order of their numbers is
// that of the list.
func New(kind string, servers []string) (Picker, error) {
	switch kind {
	case "rendezvous":
		return NewRendezvous(servers), nil
	case "ketama":
		weighted := make([]Server, len(servers))
		for i, s := range servers {
			weighted[i] = Server{Name: KetamaName(s), Weight: 1}
		}
		return NewKetama(weighted, FNV1a64), nil
	case "jump":
		return NewJump(servers), nil
	}
	return nil, fmt.Errorf("%q is not a way to spread keys: expected one of %s", kind, strings.Join(Kinds(), ", "))
}
