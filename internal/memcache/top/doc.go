// Package top shows what memcached servers do: a line for each, again and again.
//
// It owns the view. It asks servers for their statistics, and keeps only those of the moment before.
package top
