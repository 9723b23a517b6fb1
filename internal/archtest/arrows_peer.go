package archtest

// peerRooms returns the rows of the rooms in which processes ask each other for recent rows.
func peerRooms() []room {
	return []room{
		{"read/remote/wire", nil, "the wire carries requests and records; who holds rows and who asks does not matter"},
		{"read/remote", map[string]string{
			"journal":          "rows come as records of the journal",
			"read/remote/wire": "the holder speaks it",
		}, "rows of other processes come over the wire; how they are held does not matter"},
		{"api/peer", map[string]string{
			"journal":          "rows go as records of the journal",
			"read":             "the heads of a process are merged as for a query",
			"read/remote/wire": "the asking process speaks it",
		}, "a holder answers from sources, whatever holds the rows"},
	}
}
