package repair

import (
	"context"
	"errors"
)

// ErrOutdated says that a step does not fit any more. It has no class of model, and nothing has changed.
var ErrOutdated = errors.New("the bucket has changed since it was checked")

// Step is one repair that a room proposes. It deletes nothing: it sets aside what is damaged.
type Step struct {
	// Object is what is damaged or missing: the path of a file in the data folder, or the name of an object of
	// the bucket.
	Object string
	// Why says what is wrong with it.
	Why string
	// Action says what the repair does, and Loss what queries lack afterwards; an empty Loss: nothing.
	Action, Loss string
	// Do repairs. It returns [ErrOutdated] if the problem is a different one by now, or none.
	Do func(ctx context.Context) error
}
