// Package victorialogs makes a VictoriaLogs server or cluster a source of log lines: LogQL then runs over
// lines that it stores. It asks once for a directory of what a request selects: the streams, and how many
// lines each has in cells of time. Then it reads pages of lines when the query wants them.
//
// It owns the translation of selectors and filters to LogsQL, the reading of its responses, the names of
// streams and fields as labels, and the protection of the server: connections, retries, breaker. A filter
// that it sends may let too much pass, and never too little: LogQL checks each line again. It keeps no lines
// but those of samples, never answers for a tenant that has no account, and never takes part of a response
// for the whole.
package victorialogs
