package deletion

import "time"

// Limits bound deletions. The tags make the fields settings: see package config.
type Limits struct {
	Deletions    int           `name:"limits.deletions" type:"count" default:"1000" placeholder:"N" min:"0" help:"Most deletions of a tenant that are not carried out yet; further ones are refused. 0: no rows can be deleted, and the APIs for it say so."`
	CancelPeriod time.Duration `name:"limits.deletion-cancel-period" type:"time" default:"1d" placeholder:"TIME" help:"How long a deletion of log lines can be cancelled. It hides the lines at once, and they are dropped only after this time."`
}
