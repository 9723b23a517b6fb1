package carbonexplain

// Verdict says what becomes of a setting.
type Verdict string

// The verdicts.
const (
	Kept      Verdict = "kept"       // Shale behaves so, or a setting takes the value as it is
	Other     Verdict = "other"      // a setting of Shale has another form
	NotNeeded Verdict = "not needed" // what it is for does not exist here
	Missing   Verdict = "missing"    // Shale does not do it
	Unknown   Verdict = "unknown"    // carbon 1.1.10 has no such setting
)

// knob is a setting of carbon.
type knob struct {
	verdict Verdict
	text    string
}

const (
	noFiles   = "Shale keeps no file for each metric"
	noQueue   = "points are stored as they come, so nothing waits to be written"
	relayed   = "graphite.relay=FILE reads it in the section [relay] of this file"
	queued    = "graphite.relay-queue=SIZE bounds what waits for each destination; it is on disk and survives restarts"
	noReset   = "a lot that is not confirmed is sent again over a new connection"
	noLog     = "Shale logs failures, not events; log.level sets how much"
	noAMQP    = "Shale does not read from AMQP"
	noManhole = "there is no manhole; http-pprof serves profiles"
	noTagDB   = "tags are labels of a series, so there is no tag database to update"
	keepalive = "Shale closes connections that are silent for 10 minutes, and Go's keepalive finds dead ones"
	noPython  = "the server is one binary without a root folder"
)

// knobs returns the settings of carbon 1.1.10 in all sections.
func knobs() map[string]knob {
	all := map[string]knob{
		"LINE_RECEIVER_INTERFACE":     {Other, "graphite-listen=HOST:PORT; other hosts than 127.0.0.1 need auth.let-anyone-read-write-and-delete"},
		"LINE_RECEIVER_PORT":          {Other, "graphite-listen=HOST:PORT"},
		"ENABLE_UDP_LISTENER":         {Kept, "graphite-listen receives UDP, too, always"},
		"UDP_RECEIVER_INTERFACE":      {Other, "UDP has the address of graphite-listen"},
		"UDP_RECEIVER_PORT":           {Other, "UDP has the port of graphite-listen"},
		"PICKLE_RECEIVER_INTERFACE":   {Other, "graphite-pickle-listen=HOST:PORT"},
		"PICKLE_RECEIVER_PORT":        {Other, "graphite-pickle-listen=HOST:PORT"},
		"PICKLE_RECEIVER_MAX_LENGTH":  {Kept, "16 MiB, or a sixteenth of limits.inflight-bytes if that is less"},
		"PROTOBUF_RECEIVER_INTERFACE": {Other, "graphite-protobuf-listen=HOST:PORT"},
		"PROTOBUF_RECEIVER_PORT":      {Other, "graphite-protobuf-listen=HOST:PORT"},
		"MAX_RECEIVER_CONNECTIONS":    {Other, "limits.connections=N, for each protocol"},
		"METRIC_CLIENT_IDLE_TIMEOUT":  {Other, "10 minutes, fixed"},
		"USE_FLOW_CONTROL":            {Kept, "TCP is not read while points wait to become durable, always"},
		"USE_INSECURE_UNPICKLER":      {NotNeeded, "pickles are decoded by a closed set of opcodes, never run"},
		"USE_WHITELIST":               {Other, "graphite.blacklist=FILE and graphite.whitelist=FILE"},
		"WHITELISTS_DIR":              {NotNeeded, "graphite.blacklist and graphite.whitelist name files"},
		"REWRITE_RULES":               {Other, "graphite.rewrite-rules=FILE"},
		"STORAGE_DIR":                 {Other, "data-dir=DIR"},
		"LOCAL_DATA_DIR":              {Other, "data-dir=DIR; shale import whisper reads the files of this folder"},
		"CONF_DIR":                    {NotNeeded, "each setting names its file"},
		"MIN_TIMESTAMP_RESOLUTION":    {Other, "times are kept in whole seconds; graphite.storage-schemas has the step of each name"},
		"MAX_CACHE_SIZE":              {Other, "memory=SIZE bounds everything; senders wait when it is full"},
		"ENABLE_TAGS":                 {Kept, "always"},
		"CARBON_METRIC_PREFIX":        {Other, "graphite.carbon-metric-prefix=NAME"},
		"CARBON_METRIC_INTERVAL":      {Other, "graphite.carbon-metric-interval=TIME; it is off by default, and /metrics has more"},
		"CACHE_QUERY_INTERFACE":       {Other, "graphite-cache-query-listen=HOST:PORT; it is off by default"},
		"CACHE_QUERY_PORT":            {Other, "graphite-cache-query-listen=HOST:PORT; it is off by default"},
		"CACHE_METRIC_NAMES_MAX":      {Kept, "what rules say of a path is kept within a share of memory"},
		"CACHE_METRIC_NAMES_TTL":      {NotNeeded, "what rules say of a path changes only with the files"},
		"TAG_RELAY_NORMALIZED":        {Missing, "paths are relayed as they were received; graphite.relay refuses True"},
		"DESTINATION_POOL_REPLICAS":   {Missing, "each destination gets the points that are its own; graphite.relay refuses True"},
		"MAX_DATAPOINTS_PER_MESSAGE":  {Kept, "500 points, or 512 KiB if that is less"},
		"MAX_QUEUE_SIZE":              {Other, queued},
		"QUEUE_LOW_WATERMARK_PCT":     {NotNeeded, queued},
		"AGGREGATION_RULES":           {Other, "graphite.aggregation-rules=FILE"},
		"FORWARD_ALL":                 {Other, "graphite.forward-all=on|off"},
		"MAX_AGGREGATION_INTERVALS":   {Other, "graphite.max-aggregation-intervals=N"},
		"WRITE_BACK_FREQUENCY":        {Other, "graphite.write-back-frequency=TIME"},
		"DYNAMIC_ROUTER":              {NotNeeded, "a queue on disk keeps the points of a destination until it is back"},
		"DYNAMIC_ROUTER_MAX_RETRIES":  {NotNeeded, "a queue on disk keeps the points of a destination until it is back"},
		"TIME_TO_DEFER_SENDING":       {Other, "points are sent a second after they came, or when there is a mebibyte"},
		"RAVEN_DSN":                   {NotNeeded, "/metrics counts every loss, so that alerts can be made of it"},
	}
	for text, names := range map[string][]string{
		noFiles: {"DATABASE", "WHISPER_AUTOFLUSH", "WHISPER_SPARSE_CREATE", "WHISPER_FALLOCATE_CREATE", "WHISPER_LOCK_WRITES", "WHISPER_FADVISE_RANDOM",
			"CERES_MAX_SLICE_GAP", "CERES_NODE_CACHING_BEHAVIOR", "CERES_SLICE_CACHING_BEHAVIOR", "CERES_LOCK_WRITES", "MAX_CREATES_PER_MINUTE", "TAG_HASH_FILENAMES"},
		noQueue:   {"MAX_UPDATES_PER_SECOND", "MAX_UPDATES_PER_SECOND_ON_SHUTDOWN", "CACHE_WRITE_STRATEGY", "MIN_TIMESTAMP_LAG"},
		noLog:     {"ENABLE_LOGROTATION", "LOG_DIR", "LOG_UPDATES", "LOG_CREATES", "LOG_CACHE_HITS", "LOG_CACHE_QUEUE_SORTS", "LOG_LISTENER_CONN_LOST", "LOG_LISTENER_CONN_SUCCESS", "LOG_AGGREGATOR_MISSES"},
		noManhole: {"ENABLE_MANHOLE", "MANHOLE_INTERFACE", "MANHOLE_PORT", "MANHOLE_USER", "MANHOLE_PUBLIC_KEY", "MANHOLE_HOST_KEY_DIR"},
		noTagDB:   {"GRAPHITE_URL", "SKIP_TAGS_FOR_NONTAGGED", "TAG_UPDATE_INTERVAL", "TAG_BATCH_SIZE", "TAG_QUEUE_SIZE"},
		keepalive: {"TCP_KEEPALIVE", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"},
		noPython:  {"GRAPHITE_ROOT", "PID_DIR", "USER"},
	} {
		for _, name := range names {
			all[name] = knob{NotNeeded, text}
		}
	}
	for text, names := range map[string][]string{
		noAMQP: {"ENABLE_AMQP", "AMQP_VERBOSE", "AMQP_SPEC", "AMQP_HOST", "AMQP_PORT", "AMQP_VHOST", "AMQP_USER", "AMQP_PASSWORD", "AMQP_EXCHANGE",
			"AMQP_METRIC_NAME_IN_BODY", "BIND_PATTERNS"},
	} {
		for _, name := range names {
			all[name] = knob{Missing, text}
		}
	}
	for _, name := range []string{"RELAY_METHOD", "RELAY_RULES", "DESTINATIONS", "DESTINATION_PROTOCOL", "DESTINATION_TRANSPORT", "DESTINATION_SSL_CA",
		"REPLICATION_FACTOR", "DIVERSE_REPLICAS", "ROUTER_HASH_TYPE"} {
		all[name] = knob{Kept, relayed}
	}
	for _, name := range []string{"USE_RATIO_RESET", "MIN_RESET_STAT_FLOW", "MIN_RESET_RATIO", "MIN_RESET_INTERVAL"} {
		all[name] = knob{NotNeeded, noReset}
	}
	return all
}
