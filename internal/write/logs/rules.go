package logs

// Rules are what the lines of all receivers are held to. Zero limits are no limits.
type Rules struct {
	// MaxLineBytes bounds one line.
	MaxLineBytes int
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the labels of one stream. A service_name is not counted.
	MaxLabels, MaxNameBytes, MaxValueBytes int
	// MaxMetadataBytes and MaxMetadataEntries bound the structured metadata of one line, which may be 128 KiB and 1,024 at
	// most.
	MaxMetadataBytes, MaxMetadataEntries int
	// ServiceNames are the labels of which the first one that a stream has becomes its service_name, if it has none; without
	// any of them it is unknown_service. Empty: streams stay as they are.
	ServiceNames []string
	// DetectLevels says that each line gets a detected_level.
	DetectLevels bool
}

// DefaultRules returns those that Loki has if nothing is configured.
func DefaultRules() Rules {
	return Rules{
		MaxLineBytes: 256 << 10,
		MaxLabels:    15, MaxNameBytes: 1024, MaxValueBytes: 2048,
		MaxMetadataBytes: 64 << 10, MaxMetadataEntries: 128,
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
