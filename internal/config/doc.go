// Package config is the one typed tree of all settings of `shale serve`.
//
// A room that has settings owns a plain struct of them, such as write.Limits, whose tags give each field its
// name, default, bounds and help. Config embeds these structs, and app hands them to their rooms as they are.
// A name is a flag (--query.timeout), an environment variable (SHALE_QUERY_TIMEOUT) and a key of the YAML
// file (query: {timeout: ...}). This package also defines which of these wins, and finds out how much memory
// and disk the machine has.
//
// It never reads the environment or the command line: cmd passes both. No room imports it.
package config
