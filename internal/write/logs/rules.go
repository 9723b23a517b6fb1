package logs

// Limits bound one line. The tags make settings of the fields: see package config.
type Limits struct {
	// A stored value has at most 1 MiB, which holds a line and its metadata.
	MaxLineBytes int `name:"limits.line-bytes" type:"size" default:"256KiB" placeholder:"SIZE" min:"1KiB" max:"768KiB" help:"Longest log line."`
	// MaxMetadataBytes and MaxMetadataEntries bound the structured metadata of one line.
	MaxMetadataBytes   int `name:"limits.line-metadata-bytes" type:"size" default:"64KiB" placeholder:"SIZE" min:"0" max:"128KiB" help:"Most bytes of the structured metadata of one log line, names and values together."`
	MaxMetadataEntries int `name:"limits.line-metadata-entries" type:"count" default:"128" placeholder:"N" min:"0" max:"1024" help:"Most entries in the structured metadata of one log line."`
}

// Rules are what the lines of all receivers are held to. Zero limits are no limits.
type Rules struct {
	Limits
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the labels of one stream. A service_name is not counted.
	MaxLabels, MaxNameBytes, MaxValueBytes int
	// ServiceNames are the labels of which the first one that a stream has becomes its service_name, if it has none; without
	// any of them it is unknown_service. Empty: streams stay as they are.
	ServiceNames []string
	// DetectLevels says that each line gets a detected_level.
	DetectLevels bool
}

// DefaultRules returns those that Loki has if nothing is configured.
func DefaultRules() Rules {
	return Rules{
		Limits:    Limits{MaxLineBytes: 256 << 10, MaxMetadataBytes: 64 << 10, MaxMetadataEntries: 128},
		MaxLabels: 15, MaxNameBytes: 1024, MaxValueBytes: 2048,
		ServiceNames: []string{
			"service", "app", "application", "app_name", "name", "app_kubernetes_io_name", "container", "container_name",
			"k8s_container_name", "component", "workload", "job", "k8s_job_name",
		},
		DetectLevels: true,
	}
}

const (
	serviceName    = "service_name"
	unknownService = "unknown_service"
	detectedLevel  = "detected_level"
)
