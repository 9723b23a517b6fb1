// Package config is the one typed tree of everything that `shale serve` can be told.
//
// A room that has settings owns a plain struct of them, such as write.Limits, whose tags give each field its name,
// default, bounds and help. Config embeds these structs, and app hands them to their rooms as they are. A name is
// a flag (--query.timeout), an environment variable (SHALE_QUERY_TIMEOUT) and a key of the YAML file
// (query: {timeout: ...}). This package also defines the order in which these win, and finds out how much memory
// and disk the machine has.
//
// It never reads the environment or the command line: cmd hands both over. No room imports it.
package config
