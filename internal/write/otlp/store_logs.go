package otlp

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/receive"
)

// maxPooled is the largest walker, in bytes, that returns to the pool.
const maxPooled = 1 << 20

// storeLogs parses a body of logs and pushes its lines.
func (h *Handler) storeLogs(r *receive.Request, f form) (receive.Response, error) {
	if f.json {
		if err := logsToProtobuf(r); err != nil {
			return receive.Response{}, err
		}
	}
	w := h.logWalkers.Get().(*logWalker)
	defer h.giveLogWalker(w)
	b := h.o.Sink.Batch(r.Tenant, model.Logs)
	defer h.o.Sink.Recycle(b)
	w.start(h.streams, h.o.RulesOf(r.Tenant), r.Body, b, h.o.Sink.Now(), r.Reserve)
	if err := w.walk(); err != nil {
		return receive.Response{}, err
	}
	_, left, err := r.Push(b, w.entries.Left)
	if err != nil {
		return receive.Response{}, err
	}
	return report(left), nil
}

func (h *Handler) giveLogWalker(w *logWalker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.streams, w.rules = nil, nil, nil
	w.line.d, w.line.reserve, w.shared.d, w.shared.reserve = nil, nil, nil, nil
	w.entries.Forget()
	h.logWalkers.Put(w)
}

// logsToProtobuf converts JSON to protobuf with the protocol's own library, which knows the mapping.
func logsToProtobuf(r *receive.Request) error {
	n, err := jsonTreeSize(r.Body)
	if err != nil {
		return err
	}
	if err := r.Reserve(n); err != nil {
		return err
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalJSON(r.Body); err != nil {
		return fmt.Errorf("%w: OTLP body: invalid JSON for logs: %w", model.ErrInvalid, err)
	}
	if r.Body, err = req.MarshalProto(); err != nil {
		return fmt.Errorf("%w: OTLP body: %w", model.ErrInvalid, err)
	}
	return nil
}
