package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Some requests have a form that an old server may not know. What it refuses is asked for in another form.

const (
	formSamples = "samples"
	formPacked  = "packed"
	// refusedFor is how long a form is not tried again.
	refusedFor = 10 * time.Minute
)

// selector names what a request selects, and for whom.
func (d *directory) selector() string {
	return fmt.Sprintf("%v %q %q", d.account.Account, d.account.filter, d.filter)
}

// refused reports whether VictoriaLogs has lately refused a form, at all or for this selector.
func (d *directory) refused(form string) bool {
	k := &d.source.refusals
	return k.Lasts(form) || k.Lasts(form+" "+d.selector())
}

// refuse notes that VictoriaLogs has refused a request of a form. The reason may be what it selects. So a
// probe tells whether the server knows the form. The error is that of a query that has ended.
func (d *directory) refuse(ctx context.Context, form, kind, probe string) error {
	name, scope := form+" "+d.selector(), "selector"
	err := d.source.client.query(ctx, access{Account: d.account.Account}, kind, probe, func([]field) error { return nil })
	if errors.Is(err, model.ErrInvalid) {
		name, scope = form, "server"
	}
	d.source.refusals.Begin(name, refusedFor)
	d.source.metrics.refused.WithLabelValues(form, scope).Inc()
	return context.Cause(ctx)
}
