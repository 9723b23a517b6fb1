// Package rules reads the rule files of carbon that say what becomes of a point by its path: blacklist.conf,
// whitelist.conf, rewrite-rules.conf and aggregation-rules.conf. They are read as they are, and again when
// they change.
//
// Carbon logs a line that it cannot read, and goes on without it. Here every such line is an error with file
// and line: at the start it ends the server, and later the rules read before stay in force.
//
// The package never sees a value. What rules do to points is up to write/graphite/pipeline.
package rules
