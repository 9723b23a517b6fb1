package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// answer writes frames.
type answer struct {
	frames *wire.Writer
	rc     *http.ResponseController
	err    error // of a write: the asker is gone
}

// errorGrace is how long after its time a request may still write why it failed.
const errorGrace = 5 * time.Second

// newAnswer returns an answer whose writes fail after the time of the request. An asker may accept frames
// slowly: it reads other sources between them. But it does not hold what the request pins for longer.
func newAnswer(ctx context.Context, w http.ResponseWriter) *answer {
	w.Header().Set("Content-Type", "application/x-shale-frames")
	a := &answer{frames: wire.NewWriter(w), rc: http.NewResponseController(w)}
	if until, ok := ctx.Deadline(); ok {
		_ = a.rc.SetWriteDeadline(until.Add(errorGrace)) // without one, the end of the connection ends it
	}
	return a
}

func (a *answer) note(err error) error {
	if err != nil && !errors.Is(err, model.ErrLimit) {
		a.err = err
		return fmt.Errorf("%w: the asker is gone: %v", model.ErrClosed, err)
	}
	return err
}

func (a *answer) write(k wire.Kind, body []byte) error {
	return a.note(a.frames.Write(k, body))
}

func (a *answer) json(k wire.Kind, v any) error {
	return a.note(a.frames.WriteJSON(k, v))
}

func (a *answer) flush() error { return a.note(a.rc.Flush()) }

// fail ends the answer with an error, if the asker is still there.
func (a *answer) fail(f wire.Failure) {
	if a.err == nil && a.json(wire.Error, f) == nil {
		_ = a.flush() // the asker misses the last frame, which it takes for an error
	}
}

// done lets the connection serve other requests.
func (a *answer) done() { _ = a.rc.SetWriteDeadline(time.Time{}) }
