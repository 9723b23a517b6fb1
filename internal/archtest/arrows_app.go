package archtest

// appRooms returns the rows of what app builds processes with, besides the rooms that it connects.
func appRooms() []room {
	return []room{
		{"app/conns", nil, "a connection is open or closed, whatever is asked over it"},
		{"app/disk", nil, "a folder has a size, whatever lies in it"},
	}
}
