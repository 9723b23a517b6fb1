// Package logqltest makes data sets and LogQL queries over them, both determined by a seed, and compares
// results of Loki with ours. It keeps results of Loki in files, so that tests need no Loki.
//
// Only tests use it: those of LogQL here, and those in test/logql-oracle, where Loki itself computes.
package logqltest
