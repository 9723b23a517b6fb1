package line

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line/extract"
)

// Bounds of what one query may do with one line. They are far above what logs need, and exist so that no
// query and no line can hold a core or the memory of a process.
const (
	// MaxTemplateWork bounds, in bytes, what the templates of a query may read, make and repeat for one line:
	// what some six functions need that look at a whole line of 256 KiB. As much may be in memory for each
	// runner.
	MaxTemplateWork = 8 << 20
	// workStep is how much of that is charged at a time.
	workStep = 64 << 10
	// MaxJSONDepth bounds how deep objects and arrays of a JSON line may lie in each other.
	MaxJSONDepth = extract.MaxDepth
	// MaxLabels and MaxLabelBytes bound what stages may add to the labels of one line: their number, and the
	// bytes of their names and values.
	MaxLabels     = 16384
	MaxLabelBytes = model.MaxLabelBytes
)

func limitf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{model.ErrLimit}, args...)...)
}

// invalidf is what is wrong with a stage. Compile gives it its class.
func invalidf(format string, args ...any) error { return fmt.Errorf(format, args...) }
