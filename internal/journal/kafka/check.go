package kafka

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// The settings of topics that matter.
const (
	cleanupPolicy   = "cleanup.policy"
	minInsync       = "min.insync.replicas"
	timestampType   = "message.timestamp.type"
	retentionMS     = "retention.ms"
	retentionBytes  = "retention.bytes"
	maxMessageBytes = "max.message.bytes"
	minLag          = "min.compaction.lag.ms"
	uncleanElection = "unclean.leader.election.enable"
)

const (
	// LeastRetention is what ingesters that were away for a night need.
	LeastRetention = 24 * time.Hour
	// leastMessage is what the parts of usual requests need; fullMessage takes the parts of all requests.
	leastMessage = 1 << 20
	fullMessage  = 16 << 20
	// mostMessage bounds records whatever the topic takes, so that a client's request does, too.
	mostMessage = 64 << 20
)

// Finding is something about a topic that an operator should know.
type Finding struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	// Refused says that no role uses the topic as it is. Others are warnings.
	Refused bool `json:"refused"`
	// Note says that nothing is wrong.
	Note bool   `json:"note,omitempty"`
	Why  string `json:"why"`
}

// Refused returns the findings for which a topic is refused.
func Refused(all []Finding) (refused []Finding) {
	for _, f := range all {
		if f.Refused {
			refused = append(refused, f)
		}
	}
	return refused
}

// Check judges whether a topic keeps what it acknowledged until it is read.
func Check(t *Topic) (all []Finding) {
	add := func(refused bool, setting, value, why string, args ...any) {
		all = append(all, Finding{Setting: setting, Value: value, Refused: refused, Why: fmt.Sprintf(why, args...)})
	}
	of := func(setting string) string { return t.Settings[setting] }
	if bits.OnesCount32(uint32(t.Partitions)) != 1 {
		add(true, "partitions", fmt.Sprint(t.Partitions), "the number must be a power of two, such as 16: partitions are doubled when more are needed")
	}
	if len(t.Leaderless) > 0 {
		add(true, "leader", numbers(t.Leaderless), "these partitions have no leader: their brokers are away, and they take no writes")
	}
	if len(t.Behind) > 0 {
		add(false, "in-sync replicas", numbers(t.Behind), "some replicas of these partitions have not caught up; another broker that fails may stop their writes")
	}
	if v := of(cleanupPolicy); v != "delete" {
		add(true, cleanupPolicy, v, "must be delete: compaction removes records that are acknowledged and not read yet")
	}
	if v := of(uncleanElection); v != "false" {
		add(true, uncleanElection, v, "must be false: a replica that lacks acknowledged records could become the leader")
	}
	if v := of(timestampType); v != "LogAppendTime" {
		add(true, timestampType, v, "must be LogAppendTime: otherwise retention goes by the clocks of writers. Records of a clock that runs late are deleted before they are read")
	}
	checkReplicas(t, add)
	switch n, ok := t.number(retentionMS); {
	case !ok || n >= 0 && n < LeastRetention.Milliseconds():
		add(true, retentionMS, of(retentionMS), "must be at least %d (24 h) or -1: what ingesters have not read by then is lost", LeastRetention.Milliseconds())
	case n >= 0 && n < 2*LeastRetention.Milliseconds():
		add(false, retentionMS, of(retentionMS), "48 h (%d) leave time to repair ingesters over a weekend", 2*LeastRetention.Milliseconds())
	}
	if n, ok := t.number(retentionBytes); !ok || n >= 0 {
		add(false, retentionBytes, of(retentionBytes), "a bound in bytes deletes records earlier than %s says, when traffic is high; -1 has no bound", retentionMS)
	}
	switch n, ok := t.number(maxMessageBytes); {
	case !ok || n < leastMessage:
		add(true, maxMessageBytes, of(maxMessageBytes), "must be at least %d: parts of requests are divided into records of that size, and a larger row is refused", leastMessage)
	case n < fullMessage:
		add(false, maxMessageBytes, of(maxMessageBytes), "larger parts of requests are divided, and larger rows refused; %d takes both", fullMessage)
	case n > mostMessage:
		add(false, maxMessageBytes, of(maxMessageBytes), "is not used above %d (64 MiB)", mostMessage)
	}
	return all
}

// checkReplicas judges how many brokers may fail.
func checkReplicas(t *Topic, add func(refused bool, setting, value, why string, args ...any)) {
	least, ok := t.number(minInsync)
	value := t.Settings[minInsync]
	switch n := int64(t.Replicas); {
	case n <= 1:
		add(false, "replicas", fmt.Sprint(n), "the loss of one broker's disk loses acknowledged data, and a broker does not fsync: so does a power cut. Use 3 replicas")
		if ok && least > 1 {
			add(true, minInsync, value, "must not exceed the replicas, which are %d: no write would succeed", n)
		}
	case !ok || least < 2:
		add(true, minInsync, value, "must be at least 2 with %d replicas: a write that only the leader has is acknowledged, and lost with it", n)
	case least > n:
		add(true, minInsync, value, "must not exceed the replicas, which are %d: no write would succeed", n)
	case least == n:
		add(false, minInsync, value, "equals the replicas: writes stop while any broker is away. Use 3 replicas, of which 2 must be in sync")
	}
}

// numbers lists partitions, at most ten of them.
func numbers(partitions []int32) string {
	var b strings.Builder
	for i, p := range partitions {
		if i == 10 {
			fmt.Fprintf(&b, " and %d more", len(partitions)-i)
			break
		}
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprint(&b, p)
	}
	return b.String()
}
