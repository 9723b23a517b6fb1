// Package setup has the commands of `shale kafka`: they make a topic for writes, check one, and begin
// another.
//
// It owns flags and output, and the order of the steps. What a topic must be like is for package kafka, and
// what is recorded of it for package topics. It never deletes a topic or a record.
package setup
