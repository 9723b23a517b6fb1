package archtest

// catalogRooms returns the rows of what says which blocks and rows live.
func catalogRooms() []room {
	return []room{
		{"store/deletion", nil, "what a deletion takes of a series does not depend on where the series is stored"},
		{"store/retention", map[string]string{
			"store/deletion": "matchers are those of deletions",
		}, "how long a series is kept follows from its labels, wherever it is stored"},
		{"store/catalog/entry", map[string]string{
			"bucket": "a block is an object",
		}, "the entry of a block says what it says, whoever commits it"},
		{"store/families", map[string]string{
			"bucket":                 "descriptions are objects",
			"store/catalog":          "names of objects begin with what they are",
			"store/catalog/checksum": "objects have checksums",
			"store/head/metadata":    "descriptions are kept within the same bounds as in a head",
		}, "descriptions of families are independent of series and rows"},
		{"store/decision", map[string]string{
			"bucket":                 "a decision is an object",
			"store/catalog":          "it holds fences",
			"store/catalog/checksum": "objects have checksums",
		}, "a decision is made once, whatever it is about"},
		{"store/catalog/checksum", nil, "a checksum does not depend on what it covers"},
		{"store/catalog", map[string]string{
			"store/catalog/entry":    "commit records hold entries of blocks",
			"store/catalog/checksum": "records have checksums",
			"bucket":                 "commit records are objects",
			"repair":                 "a lost or damaged record has repairs",
			"store/deletion":         "commit records hold deletions",
		}, "the catalogue knows which blocks live, not their content"},
	}
}
