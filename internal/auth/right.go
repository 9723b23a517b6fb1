package auth

import (
	"fmt"
	"strings"
)

// Right is what a token lets its holder do.
type Right uint8

// The rights. Rules is taken in files, and no endpoint needs it yet.
const (
	Open   Right = iota // needs no token
	Read                // queries
	Write               // samples and lines
	Rules               // rules for alerts and recording
	Delete              // deletions, their list and their end
	Admin               // metrics, settings and profiles of the process
	Peer                // other processes of the same Shale
)

var names = [...]string{Open: "open", Read: "read", Write: "write", Rules: "rules", Delete: "delete", Admin: "admin", Peer: "peer"}

// String returns the name, as files have it.
func (r Right) String() string { return names[r] }

// ParseRight reads the name of a right that a token can have.
func ParseRight(name string) (Right, error) {
	for r := Read; r <= Peer; r++ {
		if names[r] == name {
			return r, nil
		}
	}
	return Open, fmt.Errorf("unknown right %.40q: expected one of %s", name, strings.Join(names[Read:], ", "))
}
