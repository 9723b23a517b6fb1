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
	if v.kind == mapValue {
		return w.members(m, prefix, key, v, depth)
	}
	if size := len(prefix) + 1 + len(key); size > logs.MostBytes {
		m.AddLong(size)
		return nil
	}
	name, err := w.name(prefix, key)
	if err != nil {
		return err
	}
	text, err := w.text(v)
	if err != nil {
		return err
	}
	m.Add(name, text)
	return nil
}

// name returns a key with its prefix, if it has one.
func (w *writer) name(prefix, key []byte) ([]byte, error) {
	if len(prefix) == 0 {
		return key, nil
	}
	if err := w.roomForName(len(prefix) + 1 + len(key)); err != nil {
		return nil, err
	}
	begin := len(w.arena)
	w.arena = append(append(append(w.arena, prefix...), '_'), key...)
	return w.arena[begin:len(w.arena):len(w.arena)], nil
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

// members adds the members of a map. The map gets its name when a member needs it: nothing else bounds how
// many maps without members there are, and a name may be long.
func (w *writer) members(m *logs.Metadata, prefix, key []byte, v value, depth int) error {
	var name []byte
	named := false
	err := each(w.d, v.begin, v.end, func(begin, stop int) error {
		k, item, err := keyValue(w.d, begin, stop)
		if err != nil {
			return err
		}
		if !named && (item.kind != mapValue || w.hasMember(item, depth+1)) {
			if name, err = w.mapName(m, prefix, key); err != nil {
				return err
			}
			named = true
		}
		return w.attribute(m, name, k, item, depth+1)
	})
	if errors.Is(err, errName) {
		return nil
	}
	return err
}

// errName ends a map whose name cannot be sanitized.
var errName = errors.New("a name")

// mapName returns the prefix for the members of a map. If its name cannot be sanitized, it records that.
func (w *writer) mapName(m *logs.Metadata, prefix, key []byte) ([]byte, error) {
	if len(prefix)+1+len(key) > logs.MostBytes {
		return longName, nil // the names of all members are too long as well, so they need not be written
	}
	key, err := w.name(prefix, key)
	if err != nil {
		return nil, err
	}
	name, err := m.Sanitize(key)
	if err != nil {
		m.Add(key, nil) // records the error
		return nil, errName
	}
	return name, nil
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
