package cluster

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Node is a machine that caches, as bought by the month.
type Node struct {
	Name    string  `json:"name"`
	Dollars float64 `json:"dollars_per_month"`
	Bytes   float64 `json:"bytes"`
	Gbps    float64 `json:"gbps"`
	// IOPS is the reads a second that its disks carry; 0: unlimited.
	IOPS float64 `json:"iops,omitempty"`
}

// The prices are those of the report of 2023, in dollars a month, where an instance costs as much for its
// processors as for its memory.
const (
	dollarsPerCPU = 17.72
	// DollarsPerMemoryGB is the price of 10^9 bytes of memory, and DollarsPerDiskGB that of a local SSD.
	DollarsPerMemoryGB = 4.43
	DollarsPerDiskGB   = dollarsPerDisk * 1e9 / diskBytes
	dollarsHighCPU8    = 143.88
	dollarsPerDisk     = 30.0
	diskBytes          = 375e9
	diskIOPS           = 170e3
)

// The costs of requests to a bucket, in dollars.
const (
	DollarsPerGet = 0.40e-6
	DollarsPerPut = 5e-6
)

// SecondsPerMonth is the length of a month of 30.4 days.
const SecondsPerMonth = 365.0 / 12 * 86400

// Nodes returns the price table.
func Nodes() []Node {
	return []Node{
		{Name: "memory", Dollars: dollarsPerCPU + 6*DollarsPerMemoryGB, Bytes: 6e9, Gbps: 1},
		{Name: "ssd", Dollars: dollarsHighCPU8 + 4*dollarsPerDisk, Bytes: 4 * diskBytes, Gbps: 16, IOPS: 4 * diskIOPS},
	}
}

// FindNode returns a node of the price table.
func FindNode(name string) (Node, error) {
	var names []string
	for _, n := range Nodes() {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return Node{}, fmt.Errorf("%w: expected a node among %s, got %q", model.ErrInvalid, strings.Join(names, ", "), name)
}

// Need is what a cache must carry at its peak.
type Need struct {
	Bytes float64 `json:"bytes"`
	Gbps  float64 `json:"gbps"`
	IOPS  float64 `json:"iops"`
}

// Plan is a cluster that meets a need.
type Plan struct {
	Node Node `json:"node"`
	Need Need `json:"need"`
	// Nodes is the largest of the numbers of nodes that the bytes, the network and the disks need.
	Nodes   int     `json:"nodes"`
	ByBytes int     `json:"nodes_by_bytes"`
	ByGbps  int     `json:"nodes_by_gbps"`
	ByIOPS  int     `json:"nodes_by_iops"`
	Bytes   float64 `json:"bytes"`
	Gbps    float64 `json:"gbps"`
	Dollars float64 `json:"dollars_per_month"`
}

// NewPlan returns the smallest cluster of a node that meets a need.
func NewPlan(n Node, need Need) Plan {
	p := Plan{Node: n, Need: need, ByBytes: nodes(need.Bytes, n.Bytes), ByGbps: nodes(need.Gbps, n.Gbps), ByIOPS: nodes(need.IOPS, n.IOPS)}
	p.Nodes = max(p.ByBytes, p.ByGbps, p.ByIOPS, 1)
	p.Bytes, p.Gbps, p.Dollars = float64(p.Nodes)*n.Bytes, float64(p.Nodes)*n.Gbps, float64(p.Nodes)*n.Dollars
	return p
}

func nodes(need, each float64) int {
	if each <= 0 {
		return 0
	}
	return int(math.Ceil(need/each - 1e-9))
}

// Bound says what decides the number of nodes.
func (p *Plan) Bound() string {
	switch p.Nodes {
	case p.ByBytes:
		return "bytes"
	case p.ByGbps:
		return "network"
	}
	return "disk reads"
}

// Load is the traffic that a cluster serves when a node is lost.
type Load struct {
	// Reads is reads of values a second, HitRatio the share of them that the cache serves, and ValueBytes the
	// mean size of a value.
	Reads, HitRatio, ValueBytes float64
	// GetBudget is the requests a second to the bucket that may go into filling the cache again; 0: all that
	// the network carries.
	GetBudget float64
}

// Loss is what the loss of one node costs.
type Loss struct {
	// Share is the share of the values that are lost, and JumpShare the mean share that a jump hash over a
	// list of nodes loses, since it moves the values of all nodes that follow in the list.
	Share     float64 `json:"share"`
	JumpShare float64 `json:"jump_share"`
	// Gets is the requests a second to the bucket before, and MoreGets and JumpMoreGets how many times as many
	// there are after the loss.
	Gets         float64 `json:"gets_per_second"`
	MoreGets     float64 `json:"more_gets"`
	JumpMoreGets float64 `json:"jump_more_gets"`
	// RefillGets is the requests that fetch the lost values, and Refill the time for them.
	RefillGets    float64       `json:"refill_gets"`
	RefillDollars float64       `json:"refill_dollars"`
	Refill        time.Duration `json:"refill_ns"`
}

// Lose returns what the loss of a node costs under a load. A restart of a cache that keeps its content costs
// nothing of this.
func (p *Plan) Lose(l Load) Loss {
	n := float64(p.Nodes)
	loss := Loss{Share: 1 / n, JumpShare: (n + 1) / (2 * n), Gets: l.Reads * (1 - l.HitRatio)}
	more := func(share float64) float64 {
		if l.HitRatio >= 1 {
			return 0
		}
		return (1 - l.HitRatio*(1-share)) / (1 - l.HitRatio)
	}
	loss.MoreGets, loss.JumpMoreGets = more(loss.Share), more(loss.JumpShare)
	lost := min(p.Need.Bytes/n, p.Node.Bytes)
	if l.ValueBytes > 0 {
		loss.RefillGets = lost / l.ValueBytes
		loss.RefillDollars = loss.RefillGets * DollarsPerGet
	}
	seconds := lost * 8 / (p.Node.Gbps * 1e9)
	if l.GetBudget > 0 {
		seconds = max(seconds, loss.RefillGets/l.GetBudget)
	}
	loss.Refill = time.Duration(seconds * float64(time.Second)).Round(time.Second)
	return loss
}

// GetDollars returns what requests to the bucket cost a month at a mean rate.
func GetDollars(perSecond float64) float64 { return perSecond * SecondsPerMonth * DollarsPerGet }
