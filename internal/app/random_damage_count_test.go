//go:build !torture

package app

const tortured = false
