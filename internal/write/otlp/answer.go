package otlp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
)

// answer is what a sender gets: with status 200 a response that may say what is left out, and else a google.rpc.Status.
type answer struct {
	status     int
	text       string
	allow      string
	retryAfter time.Duration
	// rejected counts what is left out of a request whose other rows are durable.
	rejected int
}

// maxAnswerBytes bounds the text of an answer.
const maxAnswerBytes = 8 << 10

// field names of the count of what is left out, in JSON.
const (
	rejectedRecords = "rejectedLogRecords"
	rejectedPoints  = "rejectedDataPoints"
)

// write sends the answer, in the form that the request had, as the protocol asks for.
func (a *answer) write(w http.ResponseWriter, f form, rejected string) {
	h := w.Header()
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	if a.retryAfter > 0 {
		// Senders that were refused at one time come back spread over half as long again.
		seconds := int((a.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.Itoa(seconds+rand.IntN(seconds/2+1)))
	}
	if len(a.text) > maxAnswerBytes {
		a.text = a.text[:maxAnswerBytes-4] + " ..."
	}
	a.text = strings.ToValidUTF8(a.text, "\ufffd")
	var out []byte
	if f.json {
		h.Set("Content-Type", "application/json")
		out = a.json(rejected)
	} else {
		h.Set("Content-Type", "application/x-protobuf")
		out = a.protobuf()
	}
	h.Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(a.status)
	_, _ = w.Write(out) // a sender that is gone needs no answer
}

// json writes ExportLogsServiceResponse or ExportMetricsServiceResponse, which differ in one name, or Status.
func (a *answer) json(rejected string) []byte {
	switch {
	case a.status != http.StatusOK:
		return append(appendString([]byte(`{"message":`), []byte(a.text)), '}')
	case a.rejected == 0:
		return []byte("{}")
	}
	out := append([]byte(`{"partialSuccess":{"`), rejected...)
	out = append(strconv.AppendInt(append(out, `":"`...), int64(a.rejected), 10), `","errorMessage":`...)
	return append(appendString(out, []byte(a.text)), "}}"...)
}

// protobuf writes the same messages: in both responses the partial success is field 1, and in it the count field 1 and the
// text field 2, which it is in Status too.
func (a *answer) protobuf() []byte {
	const messageTag, countTag, successTag = 0x12, 0x08, 0x0a
	text := append(binary.AppendUvarint([]byte{messageTag}, uint64(len(a.text))), a.text...)
	switch {
	case a.status != http.StatusOK:
		return text
	case a.rejected == 0:
		return nil
	}
	partial := append(binary.AppendUvarint([]byte{countTag}, uint64(a.rejected)), text...)
	return append(binary.AppendUvarint([]byte{successTag}, uint64(len(partial))), partial...)
}

// answerOf turns the error of a request into its answer. What is not known to be the sender's fault is a 503, which
// senders repeat.
func answerOf(err error) answer {
	var r *write.Refused
	switch {
	case errors.As(err, &r):
		return answer{status: r.Status, text: r.Error(), retryAfter: r.RetryAfter}
	case errors.Is(err, model.ErrInvalid):
		return answer{status: http.StatusBadRequest, text: strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")}
	}
	return answer{status: http.StatusServiceUnavailable, text: err.Error(), retryAfter: 5 * time.Second}
}

// report gives 200, and says what is left out if anything is; if that is all that there was, 400.
func report(stored write.Counts, left write.Rejections) answer {
	if len(left) == 0 {
		return answer{status: http.StatusOK}
	}
	a := answer{status: http.StatusOK, text: logs.Report(left), rejected: left.Counts().Total()}
	if stored.Total() == 0 {
		a.status = http.StatusBadRequest
	}
	return a
}
