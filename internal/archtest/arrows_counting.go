package archtest

// countingRooms returns the rows of what tells tenants what they have.
func countingRooms() []room {
	return []room{
		{"turns", nil, "a turn is for a request of a tenant, whatever it asks for"},
		{"pressure", nil, "how long goroutines wait for a processor does not depend on what they do"},
		{"jsonscan", nil, "a scanner of bytes knows no room, not even model"},
		{"sketch", nil, "a count is of names, whatever they name"},
		{"dayfile", nil, "a document has a day; what it says is for its owner"},
		{"read/asked", map[string]string{"dayfile": "days are kept in a file"}, "it sees what queries ask for, and no rows"},
		{"usage", map[string]string{
			"bill":    "reads have prices",
			"dayfile": "accounts are kept by day",
		}, "an account counts what it is told, by requests and stores alike"},
		{"inventory", map[string]string{
			"client":   "the server is asked from outside",
			"config":   "flags have times",
			"plot":     "sizes are written for people",
			"usage":    "the report has its form",
			"terminal": "names are made safe, and tables are laid out",
		}, "it shows what a server says; it never imports the engine"},
	}
}
