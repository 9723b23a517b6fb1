package roles

// What a unit of work costs. Unless another source is named, it was measured with one process of each role,
// one broker and a folder as the bucket, on a virtual machine with 2 cores that other work shared:
// docs/scale-out.md, section Plan.
const (
	// CPU-seconds for a million samples of known series, for a million new series, and for a gigabyte of lines.
	gatewaySamples, gatewayNew, gatewayLines = 0.65, 1.7, 3.4
	ingestSamples, ingestNew, ingestLines    = 0.87, 6.6, 10.5
	brokerSamples, brokerNew, brokerLines    = 0.84, 4.6, 4.1
	// Merging reads each row about three times: 30 million rows a second (docs/compaction.md). What lines cost
	// until all is merged (docs/operations.md) is 3.5 more than ingest.
	compactSamples, compactLines = 0.1, 3.5

	// Bytes in Kafka.
	kafkaSample, kafkaNew, kafkaLine = 23.1, 60.0, 0.36
	// Bytes in the bucket, once a day is compacted: docs/operations.md.
	bucketSample, bucketLine = 0.85, 0.18

	// knownSeries is the bytes of a series in the known set, at its highest load. The shares are those of the
	// memory of a process.
	knownSeries  = 13.2
	gatewayShare = 0.39
	ingestShare  = 0.20
	// mergedSeries is the bytes of a series of one tenant while its day is merged, and mostMerged the series of
	// the largest block: docs/compaction.md.
	mergedSeries = 300.0
	mostMerged   = 1 << 24

	// The rest are estimates. objectsPerShip is the record and the blocks of a ship of one partition: two
	// signals, and rows of two windows.
	objectsPerShip = 5
	// getsPerMerge is the reads of a merge of so many blocks.
	blocksPerMerge, getsPerMerge = 64, 640
)

// What Kafka carries, by its own operators' rules of thumb. They were not measured here.
const (
	partitionBytes     = 8e6  // a second
	partitionsOfBroker = 4000 // replicas
	leastBrokers       = 3
)
