package otlp

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/wire"
)

// isLabel reports whether a resource attribute becomes a label of the stream. The list is Loki's
// default.
func isLabel(key []byte) bool {
	switch string(key) {
	case "service.name", "service.namespace", "service.instance.id", "deployment.environment", "deployment.environment.name",
		"cloud.region", "cloud.availability_zone", "k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name",
		"k8s.container.name", "container.name", "k8s.replicaset.name", "k8s.deployment.name", "k8s.statefulset.name",
		"k8s.daemonset.name", "k8s.cronjob.name", "k8s.job.name":
		return true
	}
	return false
}

// attribute adds an attribute to m. A map is added member by member, with the names above each member
// as a prefix.
func (w *writer) attribute(m *logs.Metadata, prefix, key []byte, v value, depth int) error {
	if depth > maxDepth {
		return &wire.Malformed{What: "an attribute that is nested too deeply", At: v.begin}
	}
	if m.Full() {
		m.Add(key, nil) // counts the attribute
		return nil
	}
	if len(prefix) > 0 {
		begin := len(w.arena)
		w.arena = append(append(append(w.arena, prefix...), '_'), key...)
		key = w.arena[begin:len(w.arena):len(w.arena)]
	}
	if v.kind != mapValue {
		text, err := w.text(v)
		if err != nil {
			return err
		}
		m.Add(key, text)
		return nil
	}
	name, err := m.Sanitize(key)
	if err != nil {
		m.Add(key, nil) // records the error
		return nil
	}
	return each(w.d, v.begin, v.end, func(begin, stop int) error {
		key, item, err := keyValue(w.d, begin, stop)
		if err != nil {
			return err
		}
		return w.attribute(m, name, key, item, depth+1)
	})
}

// resource adds the attributes of the Resource message in [p, end) that are labels, or those that are
// not.
func (w *writer) resource(m *logs.Metadata, p, end int, labels bool) error {
	return each(w.d, p, end, func(begin, stop int) error {
		key, v, err := keyValue(w.d, begin, stop)
		if err != nil || isLabel(key) != labels {
			return err
		}
		return w.attribute(m, nil, key, v, 0)
	})
}

// readStream adds the labels of a resource to lb. The bytes of the Resource message are the key of its
// stream in the cache.
func readStream(resource []byte, lb *model.LabelsBuilder) error {
	var m logs.Metadata
	m.Reset()
	w := writer{d: resource, reserve: func(int64) error { return nil }} // no more than the label limit of 1 MiB
	if err := w.resource(&m, 0, len(resource), true); err != nil {
		return err
	}
	m.Each(lb.Add)
	return nil
}
