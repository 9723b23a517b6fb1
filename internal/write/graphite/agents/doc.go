// Package agents writes the series that carbon makes about itself, such as
// carbon.agents.HOST.metricsReceived, since public dashboards draw them.
//
// It owns the table of their names, and which metrics of the process each is made of. It writes only what
// the process counts: series about files and queues that do not exist here are left out. It never counts
// anything itself.
package agents
