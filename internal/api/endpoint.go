package api

import (
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Endpoint is one line in the table of a dialect.
type Endpoint struct {
	// Pattern is a pattern of [http.ServeMux]. If it names a method, the mux refuses the others.
	Pattern string
	// Name is the label `handler` of the metrics and of the log.
	Name  string
	Needs Needs
	// Methods are those that the endpoint takes, as in the header Allow. Empty: those of its needs.
	Methods string
	Serve   func(*Request) (*Response, error)
	// Explained is the empty data of the endpoint, in JSON. The response to explain=true has it next to the
	// bill of the query. Empty: the endpoint cannot be explained.
	Explained string
	// Kept says which responses may be kept. The endpoint needs a Form and a Turn, and its response depends
	// on nothing but what Kept and the Reach of its cost say. Nil: none may be kept.
	Kept *Kept
}

// Needs says what the pipeline does before it serves a request. The steps run in the order of the constants.
type Needs uint8

const (
	// Form reads the parameters of a GET, HEAD or POST into Request.Form.
	Form Needs = 1 << iota
	// Content reads the whole body of a POST into Request.Content.
	Content
	// Turn reads the tenants and waits for a turn among the running queries, which ends after the response
	// was written.
	Turn
	// Deadline ends the context of the request after Limits.Timeout.
	Deadline
)

// methods returns the methods that an endpoint takes, as in the header Allow. Empty: those of its pattern.
func (n Needs) methods() string {
	switch {
	case n&Form != 0:
		return "GET, HEAD, POST"
	case n&Content != 0:
		return "POST"
	}
	return ""
}

// Request is a request that has what its endpoint needs.
type Request struct {
	*http.Request
	// W is for an endpoint that takes the connection over. Its response must have Sent set.
	W       http.ResponseWriter
	Content []byte // the body, if the endpoint needs Content
	// Tenants are set if the endpoint needs a Turn.
	Tenants []string
	Quota   *model.Quota
	Cost    *model.Cost
	Began   time.Time
	Queued  time.Duration // waiting time for the turn
}

// Tenant returns the tenant of a request whose dialect allows only one.
func (r *Request) Tenant() string { return r.Tenants[0] }

// Response is the successful outcome of a request.
type Response struct {
	Status int // 0 means 200
	// ContentType is the type of the body. Empty: that of the dialect.
	ContentType string
	// Write writes the body; nil: there is no body. After an error the client gets the error if nothing has
	// been sent yet, and otherwise a connection that is cut.
	Write func(*Body) error
	// Encoded says that the body must not be compressed.
	Encoded bool
	// Sent says that the endpoint has sent Status itself, through Request.W.
	Sent bool
	// Done, if set, is called once the response has been written.
	Done func()
}

// Dialect is what distinguishes one HTTP API from another in the pipeline.
type Dialect struct {
	// ContentType is the type of a response that names none.
	ContentType string
	// Tenants reads the tenants from the headers of a request. It may be nil if no endpoint needs a Turn.
	Tenants func(http.Header) ([]string, error)
	// Classify gives an error its status and its text. clientGone says that the client has closed the
	// connection.
	Classify func(err error, clientGone bool) *Error
	// WriteError writes an error as the dialect shows it.
	WriteError func(*Body, *Error)
	// CrossOrigin lets scripts of pages from allowed origins read responses. CORSHeaders are the request
	// headers that they may send besides the usual ones, each after ", ".
	CrossOrigin bool
	CORSHeaders string
	// Bare responses are neither compressed nor do they state their cost, and OPTIONS is a method like any
	// other.
	Bare bool
}
