package system

import (
	"fmt"
	"net"
)

// lokiConfig is the smallest configuration of a Loki in one process that keeps its chunks on a file system.
// Limits that would refuse the loads are lifted, and queries that read everything have enough time. All other
// settings are defaults. Loki does not cache results of log queries.
func lokiConfig(dir, http, grpc string) (string, error) {
	host, port, err := net.SplitHostPort(http)
	if err != nil {
		return "", err
	}
	_, grpcPort, err := net.SplitHostPort(grpc)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`auth_enabled: false
server:
  http_listen_address: %[1]s
  http_listen_port: %[2]s
  grpc_listen_address: %[1]s
  grpc_listen_port: %[3]s
  log_level: warn
  http_server_read_timeout: 10m
  http_server_write_timeout: 10m
  grpc_server_max_recv_msg_size: 104857600
  grpc_server_max_send_msg_size: 104857600
common:
  instance_addr: %[1]s
  path_prefix: %[4]s/data
  replication_factor: 1
  ring: {instance_addr: %[1]s, kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: %[4]s/data/chunks, rules_directory: %[4]s/data/rules}}
schema_config:
  configs:
  - {from: 2020-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}
limits_config:
  ingestion_rate_mb: 100000
  ingestion_burst_size_mb: 100000
  per_stream_rate_limit: 10GB
  per_stream_rate_limit_burst: 10GB
  max_global_streams_per_user: 0
  max_streams_per_user: 0
  reject_old_samples: false
  max_query_series: 10000000
  query_timeout: 10m
  shard_streams: {enabled: false}
analytics: {reporting_enabled: false}
`, host, port, grpcPort, dir), nil
}
