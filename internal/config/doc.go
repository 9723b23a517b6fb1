// Package config is the one typed tree of everything that `shale serve` can be told: each setting with its doc, its
// default and the rule that its value must keep.
//
// It owns the settings' names, which are the same as flags (--query.timeout), as environment variables
// (SHALE_QUERY_TIMEOUT) and as keys of one YAML file (query: {timeout: ...}), the order in which these win, and the
// finding out of what memory and disk the machine gives. It never reads the environment or the command line itself
// (cmd hands both over), and no room of the engine imports it: app translates.
package config
