package function

import (
	"time"

	"github.com/shaledb/shale/internal/pyregexp"
)

// regexpTime bounds the time that a regular expression of a request may backtrack, over all names.
const regexpTime = time.Second

// CompileRegexp compiles a regular expression of a request.
func CompileRegexp(text string) (*pyregexp.Regexp, error) {
	re, err := pyregexp.Compile(text, false)
	if err == nil {
		re.LimitTotal(regexpTime)
	}
	return re, err
}
