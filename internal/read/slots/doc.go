// Package slots computes functions of PromQL over windows of time from summaries of slots, which compaction
// makes of points (see [model.Summary]), and from the points between them.
package slots
