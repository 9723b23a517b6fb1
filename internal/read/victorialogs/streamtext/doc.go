// Package streamtext reads streams as VictoriaLogs spells them, such as {app="web",pod="1"}.
package streamtext
