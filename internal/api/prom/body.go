package prom

import (
	"net/http"

	jsoniter "github.com/json-iterator/go"

	"github.com/shaledb/shale/internal/api"
)

// body writes an answer in the envelope of the dialect.
type body struct {
	*api.Body
	plain      bool             // errors are text and not JSON
	histograms *jsoniter.Stream // nil until there is one
}

// success sends an answer. With an error, of an answer without envelope, the client has got nothing or, if the body is
// broken, a part.
func (b *body) success(a *answer) error {
	switch {
	case a.empty:
		b.Status = http.StatusNoContent
		b.StateCost()
		b.W.WriteHeader(b.Status)
		return nil
	case a.stream != nil:
		b.ContentType = a.contentType
		b.Accepts = b.Accepts && !a.compressed
		if err := a.stream(b); err != nil {
			b.Broken = b.Status != 0
			b.ContentType = ""
			return err
		}
		b.Flush(http.StatusOK, true)
		return nil
	}
	b.Raw(`{"status":"success","data":`)
	a.write(b)
	warnings, infos := sortedAnnotations(a.warnings, a.query)
	b.texts(`,"warnings":`, warnings)
	b.texts(`,"infos":`, infos)
	b.Raw("}")
	b.Flush(http.StatusOK, true)
	return nil
}

// failure sends an error.
func (b *body) failure(e *apiError) {
	b.Buf = b.Buf[:0]
	if b.plain {
		b.ContentType = "text/plain; charset=utf-8"
		b.W.Header().Set("X-Content-Type-Options", "nosniff")
		b.Raw(e.text())
		b.Raw("\n")
		b.Flush(e.status, true)
		return
	}
	b.Raw(`{"status":"error","errorType":`)
	b.Str(string(e.kind))
	b.Raw(`,"error":`)
	b.Str(e.text())
	b.Raw("}")
	b.Flush(e.status, true)
}

// texts writes a member whose value is a list of strings, unless it is empty.
func (b *body) texts(member string, values []string) {
	if len(values) > 0 {
		b.Raw(member)
		b.Texts(values)
	}
}
