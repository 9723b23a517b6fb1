package prom

import (
	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/api"
)

// body encodes the data of a response.
type body struct {
	*api.Body
	histograms *jsoniter.Stream // nil until the first histogram
}

// success returns a response in the envelope of the dialect. write writes its data.
func success(write func(*body)) *api.Response { return annotated(write, nil, "") }

// annotated returns a response in the envelope with warnings. The positions in them refer to the query.
func annotated(write func(*body), a annotations.Annotations, query string) *api.Response {
	return &api.Response{Write: func(out *api.Body) error {
		b := &body{Body: out}
		b.Raw(`{"status":"success","data":`)
		write(b)
		warnings, infos := sortedAnnotations(a, query)
		b.texts(`,"warnings":`, append(warnings, out.Warnings()...))
		b.texts(`,"infos":`, infos)
		b.Raw("}")
		return nil
	}}
}

// writeError writes an error in the envelope.
func writeError(b *api.Body, e *api.Error) {
	b.ContentType = "application/json"
	b.Raw(`{"status":"error","errorType":`)
	b.Str(typeOf(e))
	b.Raw(`,"error":`)
	b.Str(api.Shorten(e.Error()))
	b.Raw("}")
	b.Flush(e.Status, true)
}

// writePlainError writes an error as text.
func writePlainError(b *api.Body, e *api.Error) {
	b.SendText(e.Status, api.Shorten(e.Error())+"\n")
}

// texts writes a member whose value is a list of strings, unless it is empty.
func (b *body) texts(member string, values []string) {
	if len(values) > 0 {
		b.Raw(member)
		b.Texts(values)
	}
}
