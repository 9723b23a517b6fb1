package otlp

import (
	"errors"
	"fmt"

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
	begin := len(w.arena)
	switch size := len(prefix) + 1 + len(key); {
	case v.kind == mapValue && !w.hasMember(v, depth):
		// Nothing gets its name. Nothing else bounds how many such maps there are, and a name may be long.
		return w.members(m, nil, v, depth)
	case size > logs.MostBytes && v.kind != mapValue:
		m.AddLong(size)
		return nil
	case size > logs.MostBytes:
		// The names of all members are too long as well, so they need not be written.
		return w.members(m, longName, v, depth)
	case len(prefix) > 0:
		if err := w.roomForName(size); err != nil {
			return err
		}
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
	return w.members(m, name, v, depth)
}

// hasMember reports whether a map has a member that is not a map, or one that is not well formed.
func (w *writer) hasMember(v value, depth int) (has bool) {
	err := each(w.d, v.begin, v.end, func(begin, stop int) error {
		_, item, err := keyValue(w.d, begin, stop)
		if err != nil || item.kind != mapValue || depth >= maxDepth || w.hasMember(item, depth+1) {
			return errMember
		}
		return nil
	})
	return err != nil
}

// errMember ends the search for a member.
var errMember = errors.New("a member")

// longName stands for any prefix that is too long.
var longName = make([]byte, logs.MostBytes)

// members adds the members of a map.
func (w *writer) members(m *logs.Metadata, prefix []byte, v value, depth int) error {
	return each(w.d, v.begin, v.end, func(begin, stop int) error {
		key, item, err := keyValue(w.d, begin, stop)
		if err != nil {
			return err
		}
		return w.attribute(m, prefix, key, item, depth+1)
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
	w := writer{d: resource, reserve: func(int64) error { return nil }} // the caller has reserved it
	if err := w.resource(&m, 0, len(resource), true); err != nil {
		return err
	}
	if m.Full() {
		return fmt.Errorf("%w: the labels of the resource: %s", model.ErrInvalid, m.Lost())
	}
	m.Each(lb.Add)
	return nil
}
