package carbonconf

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/filewatch"
)

// watchEvery is how often files are looked at. Carbon does so every 10 s (rules) or 60 s (schemas).
const watchEvery = 10 * time.Second

// Watch calls load each time that a file has changed, until the context is done. If load fails, the log says
// why: what was loaded before has to stay in force.
func Watch(ctx context.Context, w *filewatch.Watcher, log *slog.Logger, load func() error) {
	w.Run(ctx, watchEvery, nil, func() {
		if err := load(); err != nil {
			log.Error("a changed file has an error; the previous version stays in force", "err", err)
			return
		}
		log.Info("changed files are in force", "files", strings.Join(w.Paths(), " "))
	})
}
