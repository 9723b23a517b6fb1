package archtest

// appRooms returns the rows of what app builds processes with, besides the rooms that it connects.
func appRooms() []room {
	return []room{
		{"app/conns", nil, "a connection is open or closed, whatever is asked over it"},
		{"app/gateway", map[string]string{
			"bucket":        "it says which topic takes writes",
			"journal/kafka": "batches go to a topic",
			"store/known":   "an announcer says which labels travel",
			"store/topics":  "a key has a partition",
			"write":         "it is a write path",
		}, "a gateway takes batches to Kafka; receivers are mounted by app"},
		{"app/disk", nil, "a folder has a size, whatever lies in it"},
	}
}
