package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// maxLeaderName bounds the names in a record, in bytes.
const maxLeaderName = 256

// Leader says which replica of an HA pair is stored. Package write/replicas says what the fields mean.
type Leader struct {
	Tenant, Cluster string
	Replica         string
	Claim           bool
	After           int64
	Silent          time.Duration
	Newest, Until   int64
	By              string
	At              time.Duration
}

// NoLeader ends the records of an HA pair. Its value is empty, so that Kafka forgets it.
type NoLeader struct{ Tenant, Cluster string }

type leaderValue struct {
	Version int    `json:"version"`
	Replica string `json:"replica"`
	Claim   bool   `json:"claim,omitempty"`
	After   int64  `json:"after"`
	Silent  int64  `json:"silent_ns"`
	Newest  int64  `json:"newest"`
	Until   int64  `json:"until"`
	By      string `json:"by"`
	At      int64  `json:"at_ns"`
}

// leaderKey returns the key of an HA pair: both names escaped, since a cluster may have any.
func leaderKey(tenant, cluster string) string {
	return leaderKind + "/" + url.PathEscape(tenant) + "/" + url.PathEscape(cluster)
}

// Encode returns the key and the value of a record.
func (l *Leader) Encode() (key string, value []byte) {
	return leaderKey(l.Tenant, l.Cluster), encode(leaderValue{version, l.Replica, l.Claim, l.After, int64(l.Silent), l.Newest, l.Until, l.By, int64(l.At)})
}

// Encode returns the key and no value.
func (l *NoLeader) Encode() (key string, value []byte) { return leaderKey(l.Tenant, l.Cluster), nil }

func decodeLeader(key, rest string, value []byte) (any, error) {
	wrong := func(err error) error { return fmt.Errorf("record of state %q: %w: %w", key, model.ErrCorrupt, err) }
	tenant, cluster, err := leaderNames(rest)
	if err == nil && leaderKey(tenant, cluster) != key {
		err = errors.New("the key is not in the common form")
	}
	if err != nil {
		return nil, wrong(err)
	}
	if len(value) == 0 {
		return &NoLeader{tenant, cluster}, nil
	}
	if err := versionOf(value); errors.Is(err, ErrUnknown) {
		return nil, err
	} else if err != nil {
		return nil, wrong(err)
	}
	var v leaderValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, wrong(err)
	}
	if max(len(tenant), len(cluster), len(v.Replica), len(v.By)) > maxLeaderName || v.After < -1 || v.Silent < 0 {
		return nil, wrong(errors.New("a name or a number is out of bounds"))
	}
	return &Leader{tenant, cluster, v.Replica, v.Claim, v.After, time.Duration(v.Silent), v.Newest, v.Until, v.By, time.Duration(v.At)}, nil
}

func leaderNames(rest string) (tenant, cluster string, err error) {
	tenant, cluster, ok := strings.Cut(rest, "/")
	if !ok {
		return "", "", errors.New("the key has no cluster")
	}
	if tenant, err = url.PathUnescape(tenant); err == nil {
		cluster, err = url.PathUnescape(cluster)
	}
	return tenant, cluster, err
}
