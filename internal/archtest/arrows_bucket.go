package archtest

// bucketRooms returns the rows of the stores.
func bucketRooms() []room {
	const objects = "a provider knows bytes and names only"
	store := map[string]string{
		"bucket":          "a provider fulfils the contract",
		"bucket/location": "the location says where the store is",
		"bucket/rest":     "stores over HTTP share their rules",
	}
	return []room{
		{"bucket", nil, "the contract of object stores; the meaning of the objects is for its users"},
		{"bucket/*", map[string]string{
			"bucket": "a provider or wrapper fulfils the contract",
		}, objects},
		{"bucket/hedge", map[string]string{
			"bucket": "a wrapper fulfils the contract",
			"sketch": "how long reads take is learnt in little memory",
		}, objects},
		{"bucket/location", map[string]string{
			"bucket": "a prefix is the name of an object",
		}, "a URL is text; whoever reads it must be able to do without the clients of the stores"},
		{"bucket/rest", map[string]string{
			"bucket": "a response becomes an error of the contract",
		}, "what all stores have in common knows none of them"},
		{"bucket/s3", store, objects},
		{"bucket/gcs", store, objects},
		{"bucket/azure", store, objects},
		{"bucket/provider", map[string]string{
			"bucket":          "every provider fulfils the contract",
			"bucket/location": "the location says which store it is",
			"bucket/prefix":   "several can share a bucket",
			"bucket/fs":       "a folder",
			"bucket/s3":       "Amazon S3 and its like",
			"bucket/gcs":      "Google Cloud Storage",
			"bucket/azure":    "Azure Blob Storage",
		}, "it chooses a store, and adds nothing to it"},
	}
}
