package worldtest

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// OddLabels returns label sets of all sorts for a signal: with and without the labels that keys know, paths
// of Graphite, and odd values.
func OddLabels(signal model.Signal) []model.Labels {
	if signal == model.Logs {
		return []model.Labels{
			model.LabelsOf("service_name", "s"), model.LabelsOf("service_name", "s", "namespace", "n"),
			model.LabelsOf("service_name", "s", "cluster", "c"), model.LabelsOf("service_name", "s", "cluster", "c", "namespace", "n"),
			model.LabelsOf("instance", "i", "service_name", "s"), model.LabelsOf("__name__", "a.b.c"), model.LabelsOf("job", "j"),
		}
	}
	sets := []model.Labels{
		model.LabelsOf("__name__", "a.b.c", "job", "j"), model.LabelsOf("job", "j"), model.LabelsOf("instance", "only"),
		model.LabelsOf("x", "\"\\\n\t\x01é🙂<&>"), model.LabelsOf("__name__", "service", "namespace", "n", "cluster", "c"),
	}
	for _, path := range []string{
		".", "a.", ".a", "a.b", "a.b.c", "a.b.d", "a.b.c.d", "a..b", "servers.web1.cpu.user", "servers.web1.cpu.system",
		"servers.web2.cpu.user", "noDot",
	} {
		sets = append(sets, model.LabelsOf("__name__", path))
	}
	return sets
}

// NumberedLabels returns n label sets m0{i="0"}, m1{i="1"}, and so on, with as many names.
func NumberedLabels(n, names int) []model.Labels {
	var sets []model.Labels
	for i := range n {
		sets = append(sets, model.LabelsOf("__name__", fmt.Sprint("m", i%names), "i", fmt.Sprint(i)))
	}
	return sets
}
