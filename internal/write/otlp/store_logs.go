package otlp

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/shaledb/shale/internal/model"
)

// maxPooled is the size in bytes beyond which a walker is left to the garbage collector.
const maxPooled = 1 << 20

// storeLogs walks a body of logs and pushes its lines.
func (h *Handler) storeLogs(r *request) answer {
	if r.json {
		if err := r.logsToProtobuf(); err != nil {
			return answerOf(err)
		}
	}
	w := h.logWalkers.Get().(*logWalker)
	defer h.giveLogWalker(w)
	b := h.o.Sink.Batch(r.tenant, model.Logs)
	defer h.o.Sink.Recycle(b)
	w.start(h.streams, r.body, b, h.o.Sink.Now(), r.reserve)
	if err := w.walk(); err != nil {
		return answerOf(err)
	}
	res, err := h.o.Sink.Push(r.ctx, b)
	h.metrics.lines.Add(float64(res.ByKind.Lines))
	if err != nil {
		return answerOf(err)
	}
	left := w.entries.Left
	h.o.Sink.Rejected(left)
	left.Merge(res.Rejected)
	return report(res.ByKind, left)
}

func (h *Handler) giveLogWalker(w *logWalker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.streams = nil, nil
	w.line.d, w.line.reserve, w.shared.d, w.shared.reserve = nil, nil, nil, nil
	w.entries.Forget()
	h.logWalkers.Put(w)
}

// logsToProtobuf reads JSON by the library of the protocol, which knows its mapping, and writes it as protobuf, for which
// there is the walk.
func (r *request) logsToProtobuf() error {
	n, err := jsonTreeSize(r.body)
	if err != nil {
		return err
	}
	if err := r.reserve(n); err != nil {
		return err
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalJSON(r.body); err != nil {
		return fmt.Errorf("%w: OTLP body: not the JSON of logs: %w", model.ErrInvalid, err)
	}
	if r.body, err = req.MarshalProto(); err != nil {
		return fmt.Errorf("%w: OTLP body: %w", model.ErrInvalid, err)
	}
	return nil
}
