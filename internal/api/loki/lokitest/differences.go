package lokitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The paths of the API.
const (
	current = "/loki/api/v1/"
	legacy  = "/api/prom/"
)

// different returns the reason if a response differs on purpose.
func different(r *Request) string {
	q := r.Params.Get("query")
	switch {
	case strings.HasPrefix(r.Path, legacy+"label") && r.Status == http.StatusOK:
		return "Loki gives another form and no values, unless its frontend.encoding is protobuf"
	case r.Path == current+"series" && strings.Contains(r.Tenant, "|") && strings.Contains(r.Body, `"__tenant_id__":"own"`):
		return "Loki shows a stream's own label of the tenant's name, and a tenant less"
	case strings.HasPrefix(r.Body, "rpc error"):
		return "Loki shows a code of gRPC before the text"
	case r.Path == current+"index/stats" && r.Status == 200:
		return "Loki does not count what it has in memory"
	case r.Path == legacy+"query" && r.Params.Has("regexp") && (strings.HasSuffix(q, `|~ "("`) || strings.Contains(q, "ip(")):
		return "Loki shows all filters of a chain if one is wrong"
	case strings.Contains(r.Body, `"resultType":"scalar"`):
		return "Loki takes milliseconds for seconds"
	case r.Status == http.StatusInternalServerError && strings.Contains(r.Body, "many-to-many matching not allowed"):
		return "Loki takes an error of a query for one of its own"
	case strings.HasPrefix(r.Path, current+"index/volume") && r.Status == http.StatusOK && regexp.MustCompile(`"app":("a"|"")|"host"`).MatchString(r.Body):
		return "Loki counts structured metadata too"
	case strings.HasPrefix(r.Path, current+"index/volume") && strings.Contains(r.Tenant, "|") && (strings.Contains(q, "__tenant_id__") || q == "{}"):
		return "Loki does not show tenants in volumes"
	case r.Path == current+"tail" && r.Status == 400 && strings.HasPrefix(r.Body, "Bad Request"):
		return "Loki goes on to the websocket, and refuses after it"
	case strings.ContainsAny(r.Tenant, " /") || strings.HasPrefix(r.Tenant, ".") || len(r.Tenant) > 100:
		return "Shale words the refusal of a tenant in its own way"
	case strings.Contains(r.Body, "the query time range exceeds the limit"):
		return "Shale does not limit the length of a range"
	}
	return ""
}

// detectedDifference returns the reason why a response differs from Loki's.
func detectedDifference(r *Request) string {
	switch {
	case strings.HasPrefix(r.Body, "rpc error"):
		return "Loki shows a code of gRPC before the text"
	case strings.HasSuffix(r.Params.Get("query"), `|~ "("`) && r.Status == http.StatusOK:
		return "Loki ignores a wrong regular expression here"
	case strings.Contains(r.Body, `"10kB"`):
		return "Loki rounds a size, so that a filter with the value would not find its line"
	}
	return ""
}

// sortDetected sorts what Loki returns in any order.
func sortDetected(body string) string {
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			for name, member := range x {
				if name != "jsonPath" {
					walk(member)
				}
			}
		case []any:
			for _, item := range x {
				walk(item)
			}
			slices.SortFunc(x, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return string(out) + "\n"
}
