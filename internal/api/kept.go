package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api/answer"
)

// Kept says which responses of an endpoint may be kept, and given to other clients.
type Kept struct {
	// Times are the parameters without any of which the response depends on the time of the request.
	Times []string
	// Headers are those of a request that change its response, besides that of the tenants.
	Headers []string
	// Refuse reports whether the response to a request must not be kept for another reason; nil: none is
	// refused.
	Refuse func(*Request) bool
	// MayLag says that a response may be kept for a moment although another server may get lines meanwhile.
	MayLag bool
	// Align changes the parameters of a request, so that requests for nearly the same times become equal. It
	// is called whether responses are kept or not; nil: none is changed.
	Align func(url.Values)
}

// mayShare reports whether the response may be that of an equal request. A client refuses that, see
// [Request.wantsFresh], and gets a response that is computed for it alone.
func (c *call) mayShare() bool {
	k := c.e.Kept
	if k == nil || c.o.Answers == nil || c.preflight() || c.r.Form.Get("explain") != "" || c.r.Cost.Fresh {
		return false
	}
	// The text of an error may tell that a body is not a form.
	if c.r.Method == http.MethodPost && !strings.HasPrefix(c.r.Header.Get("Content-Type"), formType) {
		return false
	}
	for _, name := range k.Times {
		if c.r.Form.Get(name) == "" {
			return false
		}
	}
	return k.Refuse == nil || !k.Refuse(c.r)
}

const formType = "application/x-www-form-urlencoded"

// key returns the key of the answer to the request. Each text has its length before it, so that no two lists
// of texts look alike.
func (c *call) key() answer.Key {
	var room [2048]byte
	b := room[:0]
	add := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	list := func(all []string) {
		b = binary.AppendUvarint(b, uint64(len(all)))
		for _, s := range all {
			add(s)
		}
	}
	add(c.e.Pattern)
	add(c.r.URL.Path) // parts of it are parameters
	list(c.r.Tenants)
	for _, h := range c.e.Kept.Headers {
		list(c.r.Header[h])
	}
	type param struct {
		name   string
		values []string
	}
	var few [16]param
	params := few[:0]
	for name, values := range c.r.Form {
		params = append(params, param{name, values})
	}
	slices.SortFunc(params, func(a, b param) int { return cmp.Compare(a.name, b.name) })
	for _, p := range params {
		add(p.name)
		list(p.values)
	}
	return sha256.Sum256(b)
}

// alignFrom is the range from which times are aligned to whole minutes.
const alignFrom = time.Hour

// AlignTimes widens the parameters start and end of a range of at least an hour to whole minutes, by
// functions that read and write a time in nanoseconds. Times that it cannot read stay as they are.
func AlignTimes(form url.Values, read func(string) (int64, bool), write func(int64) string) {
	const edge = math.MaxInt64 / 4
	start, ok := read(form.Get("start"))
	end, known := read(form.Get("end"))
	if !ok || !known || start < -edge || end > edge || end-start < int64(alignFrom) {
		return
	}
	const step = int64(time.Minute)
	form.Set("start", write(start-((start%step)+step)%step))
	form.Set("end", write(end+((-end%step)+step)%step))
}
