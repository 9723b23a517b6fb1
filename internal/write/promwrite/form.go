package promwrite

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
)

const supported = "supported is remote write 1.0: Content-Type application/x-protobuf (proto=prometheus.WriteRequest), Content-Encoding snappy"

// checkForm looks at the headers that say what the body is. Senders of remote write 2.0 fall back to 1.0, or tell
// their users, on 415.
func checkForm(h http.Header) (a answer, ok bool) {
	unsupported := func(name, value string) (answer, bool) {
		return answer{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf("%s %.200q is not supported; %s", name, value, supported)}, false
	}
	if ct := h.Get("Content-Type"); ct != "" {
		kind, params, err := mime.ParseMediaType(ct)
		proto, given := params["proto"]
		if err != nil || kind != "application/x-protobuf" || given && proto != "prometheus.WriteRequest" {
			return unsupported("Content-Type", ct)
		}
	}
	if ce := h.Get("Content-Encoding"); ce != "" && !strings.EqualFold(ce, "snappy") {
		return unsupported("Content-Encoding", ce)
	}
	return answer{}, true
}
