package otlp

import (
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/receive"
)

// The JSON names of the fields that count rejected rows.
const (
	rejectedRecords = "rejectedLogRecords"
	rejectedPoints  = "rejectedDataPoints"
)

// writeResponse sends a response in the form of the request, as the protocol requires. With status 200
// it is an export response, which may list rejected rows, and otherwise a google.rpc.Status.
func writeResponse(w http.ResponseWriter, r *receive.Response, f form, rejected string) {
	text := strings.ToValidUTF8(r.BoundedText(), "\ufffd")
	if f.json {
		r.WriteBody(w, "application/json", jsonResponse(r, text, rejected))
	} else {
		r.WriteBody(w, "application/x-protobuf", protobufResponse(r, text))
	}
}

// jsonResponse encodes a Status, or an ExportLogsServiceResponse or ExportMetricsServiceResponse, which
// differ in one name.
func jsonResponse(r *receive.Response, text, rejected string) []byte {
	switch {
	case r.Status != http.StatusOK:
		return append(appendString([]byte(`{"message":`), []byte(text)), '}')
	case text == "":
		return []byte("{}")
	}
	out := append([]byte(`{"partialSuccess":{"`), rejected...)
	out = append(strconv.AppendInt(append(out, `":"`...), int64(r.Rejected), 10), `","errorMessage":`...)
	return append(appendString(out, []byte(text)), "}}"...)
}

// protobufResponse encodes the same messages. In both export responses, field 1 is the partial success;
// in that, field 1 is the count and field 2 the text. In a Status, field 2 is the text too.
func protobufResponse(r *receive.Response, text string) []byte {
	message := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), text)
	switch {
	case r.Status != http.StatusOK:
		return message
	case text == "":
		return nil
	}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(r.Rejected))
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), append(partial, message...))
}

// report returns 200, with the rejected rows if there are any. That is the rule also if no row could be
// stored: a 400 stands for a request that cannot be read. Exemplars are told in the text and not
// counted, because the protocol counts data points.
func report(left write.Rejections) receive.Response {
	n := left.Counts()
	return receive.Response{Status: http.StatusOK, Text: logs.Report(left), Rejected: n.Total() - n.Exemplars}
}
