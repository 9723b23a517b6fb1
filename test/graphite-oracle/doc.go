// Package oracle compares renders of Graphite targets with graphite-web itself, which runs in Python.
//
//	make oracle-graphite                                       # installs graphite-web and runs what follows
//	go test . -python VENV/bin/python                          # each function, and 20,000 random targets
//	go test . -python VENV/bin/python -queries 1000 -seed 7    # others
//	go test . -python VENV/bin/python -seed 7 -only FILE       # of those only the ones that FILE lists
//	go test . -python VENV/bin/python -record                  # rewrites testdata of internal/api/graphite
//
// A response that is different counts as a deliberate deviation only if it is the same once that deviation is
// made to graphite-web: see python/deviations.py.
//
// Without -python the tests are skipped: the recorded responses are compared in internal/api/graphite.
package oracle
