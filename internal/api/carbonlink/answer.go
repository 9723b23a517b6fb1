package carbonlink

import (
	"context"
	"fmt"
	"strconv"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

const (
	// maxDecoding bounds the memory of a decoded request.
	maxDecoding = 16 << 20
	// maxAnswer bounds the bytes of an answer.
	maxAnswer = 64 << 20
)

// answer returns the answer to a request, with room for its length before it. An error is an answer, too.
func (s *Server) answer(request []byte, quota *model.Quota) []byte {
	s.metrics.requests.Inc()
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	e := newEncoder(quota.TakeBytes)
	if err := model.Caught(func() error { return s.reply(ctx, request, e) }); err != nil {
		return s.failed(err)
	}
	return e.end()
}

// failed returns the answer to a request that fails.
func (s *Server) failed(err error) []byte {
	s.metrics.failures.Inc()
	s.o.Logger.Warn("a request of carbonlink fails", "err", err)
	e := newEncoder(nil)
	e.dict("error", func() { e.text(err.Error()) })
	return e.end()
}

// request is a decoded request.
type request struct {
	d *pickle.Decoder
	v pickle.Value
}

// text returns a member, which must be a text.
func (r *request) text(key string) (string, error) {
	v, ok := r.d.Get(r.v, key)
	if !ok || v.Kind() != pickle.Text {
		return "", fmt.Errorf("%w: the request has no %s, which must be a string", model.ErrInvalid, key)
	}
	return string(r.d.Text(v)), nil
}

// reply writes the answer to a request.
func (s *Server) reply(ctx context.Context, in []byte, e *encoder) error {
	room := maxDecoding
	r := request{d: &pickle.Decoder{Dicts: true, Float: number, Reserve: func(n int) error {
		if room -= n; room < 0 {
			return fmt.Errorf("%w: decoding the request takes more than %d bytes", model.ErrInvalid, maxDecoding)
		}
		return e.take(int64(n))
	}}}
	var err error
	if r.v, err = r.d.Decode(in); err != nil {
		return err
	}
	if r.v.Kind() != pickle.Dict {
		return fmt.Errorf("%w: expected a dict as request, found %s", model.ErrInvalid, r.v.Kind())
	}
	kind, err := r.text("type")
	if err != nil {
		return err
	}
	switch kind {
	case "cache-query":
		path, err := r.text("metric")
		if err != nil {
			return err
		}
		e.dict("datapoints", func() { s.points(ctx, path, e) })
		return e.err
	case "cache-query-bulk":
		return s.bulk(ctx, &r, e)
	case "get-metadata":
		return s.metadata(&r, e)
	case "set-metadata":
		return fmt.Errorf("%w: metadata cannot be set here: the files graphite.storage-schemas and graphite.storage-aggregation have it", model.ErrInvalid)
	}
	return fmt.Errorf("%w: Invalid request type %.200q", model.ErrInvalid, kind) // as carbon says
}

// bulk answers for several metrics.
func (s *Server) bulk(ctx context.Context, r *request, e *encoder) error {
	metrics, ok := r.d.Get(r.v, "metrics")
	if !ok || metrics.Kind() != pickle.List && metrics.Kind() != pickle.Tuple {
		return fmt.Errorf("%w: the request has no metrics, which must be a list of strings", model.ErrInvalid)
	}
	all := r.d.Elements(metrics)
	for v, more := all.Next(); more; v, more = all.Next() {
		if v.Kind() != pickle.Text {
			return fmt.Errorf("%w: expected a list of strings as metrics, found %s in it", model.ErrInvalid, v.Kind())
		}
	}
	// A pickle can have one long text many times in a few bytes, so the paths are copied one at a time.
	all = r.d.Elements(metrics)
	e.dict("datapointsByMetric", func() {
		e.mapping(r.d.Len(metrics), func(int) {
			v, _ := all.Next()
			path := string(r.d.Text(v))
			e.text(path)
			s.points(ctx, path, e)
		})
	})
	return e.err
}

// metadata answers for the only key that carbon knows.
func (s *Server) metadata(r *request, e *encoder) error {
	path, err := r.text("metric")
	if err != nil {
		return err
	}
	key, err := r.text("key")
	if err != nil {
		return err
	}
	if key != "aggregationMethod" {
		return fmt.Errorf("%w: Unsupported metadata key %.200q", model.ErrInvalid, key)
	}
	method, err := s.o.Source.Method(path)
	if err != nil {
		return err
	}
	e.dict("value", func() { e.text(method) })
	return nil
}

// points writes the points of a path. After an error, which the encoder keeps, nothing more is read.
func (s *Server) points(ctx context.Context, path string, e *encoder) {
	var times []int64
	var values []float64
	switch {
	case e.err != nil:
	case len(e.b) > maxAnswer:
		e.err = fmt.Errorf("%w: the answer has more than %d bytes: ask for fewer metrics", model.ErrInvalid, maxAnswer)
	default:
		if times, values, e.err = s.o.Source.Points(ctx, path); e.err != nil {
			e.err = fmt.Errorf("%.200q: %w", path, e.err)
		}
	}
	s.metrics.points.Add(float64(len(times)))
	e.list(len(times), func(i int) { e.point(times[i], values[i]) })
}

// number parses numbers of pickles in text form, which no request of graphite-web has.
func number(text []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}
