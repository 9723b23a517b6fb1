package roles

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/plan/cluster"
)

// Load is what a fleet writes.
type Load struct {
	Series   float64 `json:"active_series"`
	Interval float64 `json:"seconds_between_samples"`
	// NewPerDay is new series a day, as a share of the active ones.
	NewPerDay float64 `json:"new_series_a_day"`
	Lines     float64 `json:"bytes_of_lines_a_day"`
	Tenants   float64 `json:"tenants"`
	// MetricDays and LineDays are how long samples and lines are kept.
	MetricDays float64 `json:"days_of_metrics"`
	LineDays   float64 `json:"days_of_lines"`
	// Peak is the highest load over the mean.
	Peak float64 `json:"peak_over_mean"`
}

// Machine is what a role runs on.
type Machine struct {
	Cores   float64 `json:"cores"`
	Memory  float64 `json:"bytes_of_memory"`
	Disk    float64 `json:"bytes_of_disk"`
	Gbps    float64 `json:"gbps"`
	Dollars float64 `json:"dollars_a_month"`
}

// Policy is how the roles are run.
type Policy struct {
	// Busy is the share of the processors that the peak may take.
	Busy float64 `json:"busy"`
	// Replicas is how many brokers have each record.
	Replicas float64 `json:"replicas"`
	// Refresh and Ship are label-refresh and ship-every, in seconds.
	Refresh float64 `json:"seconds_of_label_refresh"`
	Ship    float64 `json:"seconds_of_ship"`
	// Retention is how long Kafka keeps records, in seconds.
	Retention float64 `json:"seconds_of_kafka_retention"`
	// Sticky says that a sender keeps to one gateway, so that each gateway knows a part of the series.
	Sticky bool `json:"sticky"`
}

// Role is the machines of a role.
type Role struct {
	Name     string  `json:"name"`
	Machines int     `json:"machines"`
	Bound    string  `json:"bound"` // what decides their number
	Cores    float64 `json:"cores"` // at the peak
	// Memory is what each process needs at least, and Disk what each fills.
	Memory  float64 `json:"bytes_of_memory_each"`
	Disk    float64 `json:"bytes_of_disk_each"`
	Dollars float64 `json:"dollars_a_month"`
}

// Strain is how much of a limit the plan takes.
type Strain struct {
	Share  float64 `json:"share"`
	What   string  `json:"what"`
	Remedy string  `json:"remedy"`
}

// Plan is what a load needs.
type Plan struct {
	// Samples, New and Lines are of a second in the mean: samples, new series, and bytes of lines.
	Samples    float64 `json:"samples_per_second"`
	New        float64 `json:"new_series_per_second"`
	Lines      float64 `json:"line_bytes_per_second"`
	Roles      []Role  `json:"roles"`
	Partitions int     `json:"partitions"`
	// KafkaIn is the bytes a second that gateways send at the peak, of which Labels are labels of series that
	// are known.
	KafkaIn float64 `json:"kafka_bytes_per_second"`
	Labels  float64 `json:"label_bytes_per_second"`
	// BucketBytes is what is kept, and Puts and Gets are the requests a second of ships and merges.
	BucketBytes    float64 `json:"bucket_bytes"`
	Puts           float64 `json:"puts_per_second"`
	Gets           float64 `json:"gets_per_second"`
	StorageDollars float64 `json:"storage_dollars_a_month"`
	RequestDollars float64 `json:"request_dollars_a_month"`
	// Dollars is everything of a month but queries.
	Dollars float64  `json:"dollars_a_month"`
	Strains []Strain `json:"strains"`
}

// NewPlan computes what a load needs.
func NewPlan(l Load, m Machine, p Policy) Plan {
	out := Plan{Samples: l.Series / l.Interval, New: l.Series * l.NewPerDay / 86400, Lines: l.Lines / 86400}
	cores := func(samples, fresh, lines float64) float64 {
		return l.Peak * ((out.Samples*samples+out.New*fresh)/1e6 + out.Lines*lines/1e9)
	}
	known := l.Series * (1 + l.NewPerDay/24) * knownSeries // idle series stay for an hour or more

	gateway := role("gateway", m, p, cores(gatewaySamples, gatewayNew, gatewayLines), 2)
	gateway.Memory = known / gatewayShare
	if p.Sticky {
		gateway.fit(m, gateway.Memory)
		gateway.Memory /= float64(gateway.Machines)
	}
	out.Labels = l.Series * kafkaNew / p.Refresh
	if !p.Sticky {
		out.Labels *= float64(gateway.Machines)
	}
	out.KafkaIn = l.Peak*(out.Samples*kafkaSample+out.New*kafkaNew+out.Lines*kafkaLine) + out.Labels

	ingest := role("ingest", m, p, cores(ingestSamples, ingestNew, ingestLines), 2)
	ingest.fit(m, known/ingestShare)
	ingest.Memory = known / ingestShare / float64(ingest.Machines)

	broker := role("broker of Kafka", m, p, cores(brokerSamples, brokerNew, brokerLines)*p.Replicas, leastBrokers)
	stored := out.KafkaIn / l.Peak * p.Retention * p.Replicas
	broker.atLeast(stored/(0.8*m.Disk), "disk")
	broker.atLeast(out.KafkaIn*8/1e9*(p.Replicas+1)/(0.5*m.Gbps), "network") // in, to replicas, and to ingest
	broker.Disk = stored / float64(broker.Machines)

	compact := role("compact", m, p, cores(compactSamples, 0, compactLines), 1)
	compact.Memory = min(l.Series*(1+l.NewPerDay)/l.Tenants, mostMerged) * mergedSeries

	out.Roles = []Role{gateway, ingest, broker, compact}
	for i := range out.Roles {
		out.Roles[i].Dollars = float64(out.Roles[i].Machines) * m.Dollars
		out.Dollars += out.Roles[i].Dollars
	}
	out.Partitions = partitions(max(16, out.KafkaIn/partitionBytes, 4*float64(ingest.Machines)))

	out.BucketBytes = (out.Samples*bucketSample*l.MetricDays + out.Lines*bucketLine*l.LineDays) * 86400
	ships := float64(out.Partitions) / p.Ship
	// Each block is merged about twice, by an estimate.
	merges := ships * (objectsPerShip - 1) / blocksPerMerge * 2
	out.Puts, out.Gets = ships*objectsPerShip+merges, merges*getsPerMerge
	out.StorageDollars = out.BucketBytes / 1e9 * dollarsPerGB
	out.RequestDollars = (out.Puts*cluster.DollarsPerPut + out.Gets*cluster.DollarsPerGet) * cluster.SecondsPerMonth
	out.Dollars += out.StorageDollars + out.RequestDollars
	out.strain(m, p, &gateway, &compact)
	return out
}

// dollarsPerGB is a month of a gigabyte in S3 Standard.
const dollarsPerGB = 0.023

// role returns the machines that a number of cores needs.
func role(name string, m Machine, p Policy, cores float64, least int) Role {
	r := Role{Name: name, Machines: least, Bound: "availability", Cores: cores}
	r.atLeast(cores/p.Busy/m.Cores, "processors")
	return r
}

// atLeast raises the number of machines.
func (r *Role) atLeast(n float64, bound string) {
	if need := int(math.Ceil(n - 1e-9)); need > r.Machines {
		r.Machines, r.Bound = need, bound
	}
}

// fit makes the memory of all machines enough.
func (r *Role) fit(m Machine, bytes float64) { r.atLeast(bytes/m.Memory, "memory") }

// partitions returns the next power of two.
func partitions(n float64) int { return 1 << int(math.Ceil(math.Log2(n)-1e-9)) }

// strain finds what is nearest to a limit.
func (p *Plan) strain(m Machine, by Policy, gateway, compact *Role) {
	brokers := p.Roles[2].Machines
	p.Strains = []Strain{
		{gateway.Memory / m.Memory, "memory of a gateway for all series", "more memory in each, or keep each sender at one gateway (--sticky)"},
		{p.Labels / p.KafkaIn, "share of labels that are sent again in what Kafka carries", "a longer label-refresh, or fewer gateways"},
		{compact.Memory / m.Memory, "memory to merge a day of one tenant", "more memory, or more tenants"},
		// One ship record follows the other: about five a second on an object store, by an estimate.
		{float64(p.Partitions) / by.Ship / 5, "ships, which have one order in the bucket", "a longer ship-every"},
		{float64(p.Partitions) * by.Replicas / float64(brokers) / partitionsOfBroker, "partitions of a broker", "more brokers"},
		{p.Puts / 3500, "writes a second to one prefix of S3", "a longer ship-every"},
	}
	slices.SortStableFunc(p.Strains, func(a, b Strain) int { return cmp.Compare(b.Share, a.Share) })
}

// check refuses loads that mean nothing.
func check(l *Load, m *Machine, p *Policy) error {
	for _, x := range []struct {
		flag  string
		value float64
		least float64
	}{
		{"interval", l.Interval, 1}, {"tenants", l.Tenants, 1}, {"peak", l.Peak, 1}, {"cores", m.Cores, 1}, {"memory", m.Memory, 1 << 30}, {"disk", m.Disk, 1 << 30},
		{"gbps", m.Gbps, 0.1}, {"replicas", p.Replicas, 1}, {"label-refresh", p.Refresh, 60}, {"ship-every", p.Ship, 10}, {"kafka-retention", p.Retention, 86400},
		{"series", l.Series, 0}, {"new-series", l.NewPerDay, 0}, {"logs", l.Lines, 0},
	} {
		if !(x.value >= x.least) {
			return fmt.Errorf("--%s: must be at least %v, got %v", x.flag, x.least, x.value)
		}
	}
	if !(p.Busy > 0 && p.Busy <= 1) {
		return fmt.Errorf("--busy: expected a share above 0 and at most 1, got %v", p.Busy)
	}
	if l.Series+l.Lines == 0 {
		return fmt.Errorf("nothing to plan: --series and --logs are 0")
	}
	return nil
}
