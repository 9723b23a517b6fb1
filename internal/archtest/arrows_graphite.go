package archtest

// graphiteRooms returns the rows of Graphite's names, functions and API.
func graphiteRooms() []room {
	return []room{
		{"api/graphite", map[string]string{
			"api": "one pipeline serves the requests of all dialects",
		}, "HTTP is a skin: it asks a language, never the store"},
	}
}
