package logs

import (
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/write"
)

// Report returns the text about the rejected lines of a request, or "" if there are none. It has Loki's
// form: a single error as it is, several as a count and an example per reason.
func Report(left write.Rejections) string {
	if len(left) == 1 && left[0].Samples == 1 && len(left[0].Examples) > 0 {
		return left[0].Examples[0]
	}
	var sb strings.Builder
	for i := range left {
		if i > 0 {
			sb.WriteString("; ")
		}
		example := left[i].Reason
		if len(left[i].Examples) > 0 {
			example = left[i].Examples[0]
		}
		fmt.Fprintf(&sb, "%d errors like: %s", left[i].Samples, example)
	}
	return sb.String()
}
