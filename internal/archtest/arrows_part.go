package archtest

// partRooms returns the rows of the file format: part, which all others import, and its inner rooms, top
// down.
func partRooms() []room {
	return []room{
		{"store/part", map[string]string{
			"store/part/text":    "it is the face of its rooms, and lists what a part is made of",
			"store/part/samples": "it is the face of its rooms, and lists what a part is made of",
			"store/part/series":  "it is the face of its rooms, and lists what a part is made of",
			"store/part/lines":   "pages are decoded with all codecs",
			"store/part/file":    "it is the face of its rooms, and lists what a part is made of",
			"store/part/column":  "its errors name their class in one way",
			"nametree":           "trees are verified when they enter the cache",
			"cache":              "pages and lists are cached by typed keys; the cache itself comes through an interface that part declares",
		}, "the file format is pure bytes; it does not know who stores, caches or serves them"},
		{"store/part/text", map[string]string{
			"store/part/lines":  "lines are coded and filtered",
			"store/part/file":   "units are pages of a section",
			"store/part/column": "times, lengths and references are columns of numbers",
		}, "text knows neither samples nor the labels of series"},
		{"store/part/samples", map[string]string{
			"store/part/series": "exemplars store label sets as series do",
			"store/part/file":   "rows are pages of a section",
			"store/part/column": "times and values are columns of numbers",
		}, "samples do not know text"},
		{"store/part/lines", map[string]string{
			"store/part/file":   "a page of lines is a page with a codec of its own",
			"store/part/column": "values of lines are columns of numbers",
		}, "the codec of lines knows neither units nor series"},
		{"store/part/series", map[string]string{
			"nametree":          "a tree of names is a page of a section",
			"store/part/file":   "keys, labels, postings and masks are sections",
			"store/part/column": "masks are a column of numbers, and payloads are scanned",
		}, "series are found and selected without their rows"},
		{"store/part/file", map[string]string{
			"store/part/column": "payloads are scanned",
		}, "the container holds sections, whatever is in them"},
		{"store/part/column", nil, "a codec of numbers is bytes in, bytes out"},
	}
}
