package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/changes"
)

// keepAnswers returns the tier of answers, or nil if it is off.
func keepAnswers(c *config.Config, e *Engine, registry *prometheus.Registry) *answer.Tier {
	if !c.Answers.On() {
		return nil
	}
	o := answer.Options{MaxBytes: memoryOf(c).answers, State: state{e.changes, e}, Registerer: registry}
	for _, cause := range changes.Causes() {
		o.Causes = append(o.Causes, string(cause))
	}
	return answer.New(o)
}

// state is the log of changes as the tier of answers sees it.
type state struct {
	*changes.Log
	engine *Engine
}

// Changed says why a response may be another one now.
func (s state) Changed(at uint64, tenants []string, r *model.Reach) string {
	return string(s.Log.Changed(at, tenants, r))
}

// Look makes the log know what others have written to VictoriaLogs.
func (s state) Look(ctx context.Context, tenants []string, r *model.Reach) string {
	t, ok := r.Further()
	if !ok || s.engine.further == nil {
		return ""
	}
	if until, ok := s.engine.further.Check(ctx, tenants, t); !ok || until < t.Max {
		return string(changes.Unknown)
	}
	return ""
}
