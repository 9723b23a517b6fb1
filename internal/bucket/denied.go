package bucket

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// ErrDenied says that the store refuses the process, or that the whole bucket is missing: credentials, a
// policy or a name are wrong. It is of class transient, because an operator can mend it while Shale runs and
// no object is damaged. Repeating the request at once does not help.
var ErrDenied = fmt.Errorf("%w: the store refuses access", model.ErrTransient)
