package prom

import (
	"context"
	"fmt"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// requestBytes is the memory of a decoded remote read for each encoded byte: an empty matcher is encoded in
// two, and decoded twice.
const requestBytes = 80

// read serves remote read: a protobuf in, series out, either whole or as a stream of chunks.
func (h *Handler) read(r *api.Request) (*api.Response, error) {
	req, err := decodeRead(r.Content, h.o.Limits.MaxBodyBytes, r.Quota)
	if err != nil {
		return nil, err
	}
	queries := make([]readQuery, len(req.Queries))
	charge := regexCharge{quota: r.Quota}
	for i, q := range req.Queries {
		if queries[i], err = newReadQuery(q, &charge); err != nil {
			return nil, err
		}
	}
	kind, err := responseType(req.AcceptedResponseTypes)
	if err != nil {
		return nil, badData("%w", err)
	}
	if kind == prompb.ReadRequest_STREAMED_XOR_CHUNKS {
		return h.readChunks(r, queries), nil
	}
	return h.readSamples(r, queries)
}

// decodeRead decodes the body of a remote read: a prompb.ReadRequest in a snappy block of at most maxBytes.
func decodeRead(text []byte, maxBytes int64, quota *model.Quota) (*prompb.ReadRequest, error) {
	n, err := snappy.DecodedLen(text)
	if err != nil {
		return nil, badData("%w", err)
	}
	if int64(n) > maxBytes {
		return nil, badData("snappy: decoded length %d exceeds limit %d", n, maxBytes)
	}
	if err := quota.TakeBytes(requestBytes * int64(n)); err != nil {
		return nil, err
	}
	decoded, err := snappy.Decode(nil, text)
	if err != nil {
		return nil, badData("%w", err)
	}
	req := new(prompb.ReadRequest)
	if err := req.Unmarshal(decoded); err != nil {
		return nil, badData("%w", err)
	}
	if len(req.Queries) > maxSelectors {
		return nil, badData("%d queries; at most %d are allowed", len(req.Queries), maxSelectors)
	}
	return req, nil
}

// responseType returns the first accepted type that is supported. Without any accepted type it is samples.
func responseType(accepted []prompb.ReadRequest_ResponseType) (prompb.ReadRequest_ResponseType, error) {
	if len(accepted) == 0 {
		return prompb.ReadRequest_SAMPLES, nil
	}
	for _, t := range accepted {
		if t == prompb.ReadRequest_SAMPLES || t == prompb.ReadRequest_STREAMED_XOR_CHUNKS {
			return t, nil
		}
	}
	const most = 10
	more := ""
	if len(accepted) > most {
		accepted, more = accepted[:most], fmt.Sprintf(" and %d more", len(accepted)-most)
	}
	return 0, fmt.Errorf("server does not support any of the requested response types: %v%s; supported: [SAMPLES STREAMED_XOR_CHUNKS]", accepted, more)
}

// readQuery is one query of a remote read. start and end are Unix milliseconds, both inclusive.
type readQuery struct {
	start, end int64
	matchers   []*labels.Matcher
	hints      *storage.SelectHints // nil: none
}

// newReadQuery charges the regular expressions of the query before it compiles them.
func newReadQuery(q *prompb.Query, charge *regexCharge) (readQuery, error) {
	out := readQuery{start: q.StartTimestampMs, end: q.EndTimestampMs}
	for _, m := range q.Matchers {
		var op labels.MatchType
		switch m.Type {
		case prompb.LabelMatcher_EQ:
			op = labels.MatchEqual
		case prompb.LabelMatcher_NEQ:
			op = labels.MatchNotEqual
		case prompb.LabelMatcher_RE:
			op = labels.MatchRegexp
		case prompb.LabelMatcher_NRE:
			op = labels.MatchNotRegexp
		default:
			return out, badData("invalid matcher type")
		}
		if op == labels.MatchRegexp || op == labels.MatchNotRegexp {
			if err := charge.matcher(m.Value); err != nil {
				return out, err
			}
		}
		matcher, err := labels.NewMatcher(op, m.Name, m.Value)
		if err != nil {
			return out, badData("%w", err)
		}
		out.matchers = append(out.matchers, matcher)
	}
	if p := q.Hints; p != nil {
		// The hint of an aggregation is dropped: it would leave out labels, and the client wants all of them.
		out.hints = &storage.SelectHints{Start: p.StartMs, End: p.EndMs, Step: p.StepMs, Func: p.Func, Range: p.RangeMs}
	}
	return out, nil
}

// walk calls visit for each series that the query selects.
func (q *readQuery) walk(ctx context.Context, store storage.Queryable, sorted bool, visit func(storage.Series) error) (err error) {
	querier, err := store.Querier(q.start, q.end)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := querier.Close(); err == nil {
			err = closeErr
		}
	}()
	set := querier.Select(ctx, sorted, q.hints, q.matchers...)
	for set.Next() {
		if err := visit(set.At()); err != nil {
			return err
		}
	}
	if err := set.Err(); err != nil {
		return err
	}
	return ctx.Err()
}
