package head

import "context"

// Work does one merge, or the ships that are due, and reports whether there was one. Start does so in the background;
// this is for whoever wants to do each step.
func (h *Head) Work(ctx context.Context) (bool, error) { return h.mergeOnce(ctx) }
