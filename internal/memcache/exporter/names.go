package exporter

// stat is a metric that is one statistic of a server. Those from more on are not of memcached_exporter.
type stat struct {
	name, from string
	counter    bool
	help       string
}

const (
	counter = true
	gauge   = false
)

var general = []stat{
	{"uptime_seconds", "uptime", counter, "Time since the server started."},
	{"time_seconds", "time", gauge, "Time of the server."},
	{"current_bytes", "bytes", gauge, "Bytes of items."},
	{"limit_bytes", "limit_maxbytes", gauge, "Memory that the server may use for items."},
	{"current_items", "curr_items", gauge, "Items."},
	{"items_total", "total_items", counter, "Items that were stored."},
	{"read_bytes_total", "bytes_read", counter, "Bytes from clients."},
	{"written_bytes_total", "bytes_written", counter, "Bytes to clients."},
	{"current_connections", "curr_connections", gauge, "Open connections."},
	{"connections_total", "total_connections", counter, "Connections that were opened."},
	{"connections_rejected_total", "rejected_connections", counter, "Connections that were refused at the limit."},
	{"connections_yielded_total", "conn_yields", counter, "Times that a connection gave way to others."},
	{"connections_listener_disabled_total", "listen_disabled_num", counter, "Times that the server stopped to take connections at the limit."},
	{"items_evicted_total", "evictions", counter, "Items that were evicted before they expired."},
	{"items_reclaimed_total", "reclaimed", counter, "Expired items whose memory was used again."},
	{"item_too_large_total", "store_too_large", counter, "Items that were refused because they are too large."},
	{"item_no_memory_total", "store_no_memory", counter, "Items that were refused for want of memory."},
	{"direct_reclaims_total", "direct_reclaims", counter, "Times that a request had to evict by itself."},
	{"malloced_bytes", "total_malloced", gauge, "Memory of slab pages."},
	{"accepting_connections", "accepting_conns", gauge, "1 while the server takes connections."},
	{"lru_crawler_starts_total", "lru_crawler_starts", counter, "Times that the crawler of expired items started."},
	{"lru_crawler_items_checked_total", "crawler_items_checked", counter, "Items that the crawler looked at."},
	{"lru_crawler_reclaimed_total", "crawler_reclaimed", counter, "Items that the crawler freed."},
	{"lru_crawler_moves_to_cold_total", "moves_to_cold", counter, "Items that moved to the cold list."},
	{"lru_crawler_moves_to_warm_total", "moves_to_warm", counter, "Items that moved to the warm list."},
	{"lru_crawler_moves_within_lru_total", "moves_within_lru", counter, "Items that moved within a list."},

	{"extstore_compact_lost_total", "extstore_compact_lost", counter, "Items that compaction lost."},
	{"extstore_compact_rescued_total", "extstore_compact_rescues", counter, "Items that compaction kept."},
	{"extstore_compact_skipped_total", "extstore_compact_skipped", counter, "Items that compaction dropped because they were not read."},
	{"extstore_pages_allocated_total", "extstore_page_allocs", counter, "Pages that were taken into use."},
	{"extstore_pages_evicted_total", "extstore_page_evictions", counter, "Pages that were dropped."},
	{"extstore_pages_reclaimed_total", "extstore_page_reclaims", counter, "Empty pages that were used again."},
	{"extstore_pages_free", "extstore_pages_free", gauge, "Pages that are free."},
	{"extstore_pages_used", "extstore_pages_used", gauge, "Pages that are in use."},
	{"extstore_objects_evicted_total", "extstore_objects_evicted", counter, "Values that went with a page."},
	{"extstore_objects_read_total", "extstore_objects_read", counter, "Values that were read from disk."},
	{"extstore_objects_written_total", "extstore_objects_written", counter, "Values that were written to disk."},
	{"extstore_objects_used", "extstore_objects_used", gauge, "Values on disk."},
	{"extstore_bytes_evicted_total", "extstore_bytes_evicted", counter, "Bytes that went with a page."},
	{"extstore_bytes_written_total", "extstore_bytes_written", counter, "Bytes that were written to disk."},
	{"extstore_bytes_read_total", "extstore_bytes_read", counter, "Bytes that were read from disk."},
	{"extstore_bytes_used", "extstore_bytes_used", counter, "Bytes on disk."},
	{"extstore_bytes_fragmented", "extstore_bytes_fragmented", gauge, "Bytes on disk that nothing refers to."},
	{"extstore_bytes_limit", "extstore_limit_maxbytes", gauge, "Bytes that may be used on disk."},
	{"extstore_io_queue_depth", "extstore_io_queue", gauge, "Reads and writes that wait for the disk."},
}

// more is what memcached_exporter lacks.
var more = []stat{
	{"extstore_gets_total", "get_extstore", counter, "Gets that went to the disk."},
	{"extstore_gets_aborted_total", "get_aborted_extstore", counter, "Gets whose read from disk was given up."},
	{"extstore_gets_oom_total", "get_oom_extstore", counter, "Gets that failed for want of memory for the value on disk."},
	{"extstore_recached_total", "recache_from_extstore", counter, "Values that went back from disk to memory."},
	{"extstore_misses_total", "miss_from_extstore", counter, "Gets that found an item whose value had gone from disk."},
	{"extstore_bad_checksums_total", "badcrc_from_extstore", counter, "Values that came back from disk with a wrong checksum."},
	{"extstore_memory_pressure", "extstore_memory_pressure", gauge, "How much memory the items on disk keep the server from having free."},
	{"extstore_compact_rescued_cold_total", "extstore_compact_resc_cold", counter, "Items that compaction kept although they were cold."},
	{"extstore_compact_rescued_old_total", "extstore_compact_resc_old", counter, "Items that compaction kept as old."},
	{"items_evicted_unfetched_total", "evicted_unfetched", counter, "Items that were evicted without ever having been read."},
	{"items_evicted_active_total", "evicted_active", counter, "Items that were evicted although they had been read a moment ago."},
	{"items_expired_unfetched_total", "expired_unfetched", counter, "Items that expired without ever having been read."},
	{"slab_pages_moved_total", "slabs_moved", counter, "Pages that moved from one class to another."},
	{"slab_reassign_rescues_total", "slab_reassign_rescues", counter, "Items that were kept when their page moved."},
	{"slab_reassign_evictions_total", "slab_reassign_evictions_nomem", counter, "Items that were evicted because their page moved."},
	{"slab_reassign_busy_items_total", "slab_reassign_busy_items", counter, "Items that held up the move of their page."},
	{"response_oom_total", "response_obj_oom", counter, "Connections that were closed for want of memory for responses."},
	{"read_buffer_oom_total", "read_buf_oom", counter, "Connections that were closed for want of memory for requests."},
	{"hash_bytes", "hash_bytes", gauge, "Memory of the hash table, which is not part of limit_bytes."},
	{"watcher_skipped_total", "log_watcher_skipped", counter, "Lines that watchers missed because they were slow."},
}

// ofItems and ofSlabs are metrics with the label slab.
var ofItems = []stat{
	{"slab_current_items", "number", gauge, "Items of the class."},
	{"slab_items_age_seconds", "age", gauge, "Age of the oldest item."},
	{"slab_items_crawler_reclaimed_total", "crawler_reclaimed", counter, "Items that the crawler freed."},
	{"slab_items_evicted_total", "evicted", counter, "Items that were evicted."},
	{"slab_items_evicted_nonzero_total", "evicted_nonzero", counter, "Items with a time to live that were evicted."},
	{"slab_items_evicted_time_seconds", "evicted_time", counter, "Time since the last use of the item that was evicted last."},
	{"slab_items_evicted_unfetched_total", "evicted_unfetched", counter, "Items that were evicted without having been read."},
	{"slab_items_expired_unfetched_total", "expired_unfetched", counter, "Items that expired without having been read."},
	{"slab_items_outofmemory_total", "outofmemory", counter, "Items that were refused for want of memory."},
	{"slab_items_reclaimed_total", "reclaimed", counter, "Expired items whose memory was used again."},
	{"slab_items_tailrepairs_total", "tailrepairs", counter, "Items that were freed although something referred to them."},
	{"slab_mem_requested_bytes", "mem_requested", counter, "Bytes that items of the class asked for."},
	{"slab_items_moves_to_cold", "moves_to_cold", counter, "Items that moved to the cold list."},
	{"slab_items_moves_to_warm", "moves_to_warm", counter, "Items that moved to the warm list."},
	{"slab_items_moves_within_lru", "moves_within_lru", counter, "Items that moved within a list."},
	{"slab_hot_items", "number_hot", gauge, "Items of the hot list."},
	{"slab_warm_items", "number_warm", gauge, "Items of the warm list."},
	{"slab_cold_items", "number_cold", gauge, "Items of the cold list."},
	{"slab_temporary_items", "number_temp", gauge, "Items of the list for short times to live."},
	{"slab_hot_age_seconds", "age_hot", gauge, "Age of the oldest item of the hot list."},
	{"slab_warm_age_seconds", "age_warm", gauge, "Age of the oldest item of the warm list."},
}

var ofSlabs = []stat{
	{"slab_chunk_size_bytes", "chunk_size", gauge, "Bytes of a chunk."},
	{"slab_chunks_per_page", "chunks_per_page", gauge, "Chunks of a page."},
	{"slab_current_pages", "total_pages", gauge, "Pages of the class."},
	{"slab_current_chunks", "total_chunks", gauge, "Chunks of the class."},
	{"slab_chunks_used", "used_chunks", gauge, "Chunks that are in use."},
	{"slab_chunks_free", "free_chunks", gauge, "Chunks that are free."},
	{"slab_chunks_free_end", "free_chunks_end", gauge, "Chunks that were never used."},
}

var ofSettings = []stat{
	{"max_connections", "maxconns", gauge, "Limit of connections."},
	{"lru_crawler_enabled", "lru_crawler", gauge, "1: the crawler is on."},
	{"lru_crawler_sleep", "lru_crawler_sleep", gauge, "Microseconds that the crawler sleeps after each item."},
	{"lru_crawler_to_crawl", "lru_crawler_tocrawl", gauge, "Items that the crawler looks at in a run; 0: all."},
	{"lru_crawler_maintainer_thread", "lru_maintainer_thread", gauge, "1: a thread maintains the lists."},
	{"lru_crawler_hot_percent", "hot_lru_pct", gauge, "Share of memory of the hot list."},
	{"lru_crawler_warm_percent", "warm_lru_pct", gauge, "Share of memory of the warm list."},
	{"lru_crawler_hot_max_factor", "hot_max_factor", gauge, "Age of the hot list, of that of the cold one."},
	{"lru_crawler_warm_max_factor", "warm_max_factor", gauge, "Age of the warm list, of that of the cold one."},
}
