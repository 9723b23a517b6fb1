// Package carbonexplain says, knob by knob, what the settings of a fleet of carbon mean for Shale: those of
// carbon.conf, and the files next to it. It owns the table of carbon's settings.
//
// It reads the files as the server would, so it finds their errors, too. It never starts or changes a server.
package carbonexplain
