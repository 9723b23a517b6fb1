package receive

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
)

// Server takes the requests of one protocol. It is safe for concurrent use.
type Server struct {
	sink    Sink
	codec   *body.Codec
	forms   Forms
	metrics *Metrics
}

// New returns a server. The codec reads and decodes the bodies of the protocol, and forms are what it takes.
func New(sink Sink, codec *body.Codec, forms Forms, metrics *Metrics) *Server {
	return &Server{sink: sink, codec: codec, forms: forms, metrics: metrics}
}

// Serve reads the body of a request and calls store with it. formErr is what is wrong with the
// headers. When store returns an error, only Stored of its response counts.
func (s *Server) Serve(r *http.Request, formErr error, store func(*Request) (Response, error)) Response {
	if r.Method != http.MethodPost {
		return Response{Status: http.StatusMethodNotAllowed, Text: "expected POST, got " + r.Method}
	}
	res, err := Response{}, formErr
	if err == nil {
		res, err = s.serve(r, store)
	}
	if err == nil {
		return res
	}
	refused := refusal(err)
	refused.Stored = res.Stored
	if refused.Status < http.StatusInternalServerError {
		tenant := tenantOf(r)
		if model.CheckTenant(tenant) != nil {
			tenant = "" // the text quotes the name
		}
		s.sink.LogRefusal(tenant, strconv.Itoa(refused.Status), write.Counts{}, refused.Text)
	}
	return refused
}

// tenantOf returns the tenant of a request for the log, which may not be valid.
func tenantOf(r *http.Request) string {
	return cmp.Or(r.Header.Get(model.TenantHeader), model.DefaultTenant)
}

func (s *Server) serve(r *http.Request, store func(*Request) (Response, error)) (Response, error) {
	tenant, err := write.Tenant(r.Header.Values(model.TenantHeader))
	if err != nil {
		return Response{}, err
	}
	in := s.codec.Take()
	limits := s.sink.Limits(tenant)
	grant, err := s.codec.Read(r, s.sink, tenant, in, limits.MaxBodyBytes)
	if err != nil {
		s.codec.Give(in)
		return Response{}, err
	}
	defer grant.Release()
	s.metrics.BodyBytes.Add(float64(len(in.Bytes)))
	ctx, end := grant.Compute(r.Context())
	defer end()
	req := &Request{
		Context: ctx, Tenant: tenant, Body: in.Bytes, Reserve: grant.Grow,
		server: s, in: in, out: s.codec.Take(), maxDecoded: limits.MaxDecodedBytes,
	}
	defer req.giveBuffers()
	sent := req.Body
	res, err := store(req)
	if err != nil {
		err = s.forms.hint(err, r.Header, sent)
	}
	return res, err
}

// Request is a request whose body has been read.
type Request struct {
	Context context.Context
	Tenant  string
	// Body is the body as sent, and after Decode as decoded. It lives until the response is known.
	Body []byte
	// Reserve asks for memory before it is used. The request holds it until its response is known.
	Reserve func(bytes int64) error

	server     *Server
	in, out    *body.Buffer
	maxDecoded int64
}

func (r *Request) giveBuffers() {
	r.server.codec.Give(r.in)
	r.server.codec.Give(r.out)
}

// Decode replaces the body by its decoded form.
func (r *Request) Decode(e body.Encoding) error {
	if e == body.Plain && (r.maxDecoded <= 0 || int64(len(r.Body)) <= r.maxDecoded) {
		return nil
	}
	if err := r.server.codec.Decode(e, r.Body, r.out, r.maxDecoded, r.Reserve); err != nil {
		return err
	}
	r.in, r.out = r.out, r.in
	r.Body = r.in.Bytes
	return nil
}

// Push makes a batch durable. It returns how many rows are durable, and left, the rows that the
// receiver left out, together with those that the write path left out.
func (r *Request) Push(b *model.Batch, left write.Rejections) (write.Counts, write.Rejections, error) {
	res, err := r.server.sink.Push(r.Context, b)
	r.server.metrics.received(res.ByKind)
	if err != nil {
		return res.ByKind, nil, err
	}
	r.server.sink.Rejected(r.Tenant, left)
	left.Merge(res.Rejected)
	for i := range left {
		r.server.sink.LogRefusal(r.Tenant, left[i].Reason, left[i].ByKind, left[i].Examples[0])
	}
	return res.ByKind, left, nil
}
