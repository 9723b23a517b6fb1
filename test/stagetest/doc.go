// Package stagetest runs LogQL and Loki's API over the real engine, whose bucket is a folder or an object
// store of test/objectstores.
//
// It owns the stages that stored lines pass through: buffers, local parts, shipped blocks, merged blocks,
// and restarts in between. Its tests compare with recorded results of a real Loki at each stage.
// test/logql-oracle does the same with a Loki that computes.
package stagetest
