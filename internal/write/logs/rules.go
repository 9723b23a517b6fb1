package logs

// Limits bound one line. The tags make settings of the fields: see package config.
type Limits struct {
	// MaxLineBytes bounds one line. A stored value, which holds a line and its metadata, has at most 1
	// MiB.
	MaxLineBytes int `name:"limits.line-bytes" tenant:"own" type:"size" default:"256KiB" placeholder:"SIZE" min:"1KiB" max:"768KiB" help:"Longest log line."`
	// MaxMetadataBytes and MaxMetadataEntries bound the structured metadata of one line.
	MaxMetadataBytes   int `name:"limits.line-metadata-bytes" tenant:"own" type:"size" default:"64KiB" placeholder:"SIZE" min:"0" max:"128KiB" help:"Most bytes of the structured metadata of one log line, names and values together."`
	MaxMetadataEntries int `name:"limits.line-metadata-entries" tenant:"own" type:"count" default:"128" placeholder:"N" min:"0" max:"1024" help:"Most entries in the structured metadata of one log line."`
}

// LabelLimits bound the labels of one stream. service_name does not count.
type LabelLimits struct{ MaxLabels, MaxNameBytes, MaxValueBytes int }

// Rules are the rules for lines, the same for all receivers. A limit of zero means no limit.
type Rules struct {
	Limits
	LabelLimits
	// ServiceNames lists labels in order of preference. A stream without a service_name gets the value
	// of the first one that it has, or unknown_service. If the list is empty, streams get no
	// service_name.
	ServiceNames []string
	// DetectLevels enables detected_level.
	DetectLevels bool
}

// DefaultRules returns Loki's defaults.
func DefaultRules() Rules {
	return Rules{
		Limits:      Limits{MaxLineBytes: 256 << 10, MaxMetadataBytes: 64 << 10, MaxMetadataEntries: 128},
		LabelLimits: LabelLimits{MaxLabels: 15, MaxNameBytes: 1024, MaxValueBytes: 2048},
		ServiceNames: []string{
			"service", "app", "application", "app_name", "name", "app_kubernetes_io_name", "container", "container_name",
			"k8s_container_name", "component", "workload", "job", "k8s_job_name",
		},
		DetectLevels: true,
	}
}

// UnknownService is the service_name of a stream that has none of the labels that it may be made of.
const UnknownService = "unknown_service"

const (
	serviceName   = "service_name"
	detectedLevel = "detected_level"
)
