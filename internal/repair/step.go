package repair

import "context"

// Step is one repair that a room proposes.
type Step struct {
	// File is the path of the damaged file in the data folder.
	File string
	// Why says what is wrong with it.
	Why string
	// Action says what the repair does, and Loss what queries lack afterwards; an empty Loss: nothing.
	Action, Loss string
	// Do repairs.
	Do func(ctx context.Context) error
}
