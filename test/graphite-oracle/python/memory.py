"""Series in memory, found and read by the rules of graphite-web's finder and of whisper."""
import fnmatch
import re

from graphite.finders import expand_braces
from graphite.finders.utils import BaseFinder
from graphite.intervals import Interval, IntervalSet
from graphite.node import BranchNode, LeafNode
from graphite.tags.base import BaseTagDB
from graphite.tags.utils import TaggedSeries

SERIES = {}  # name: (start, step, values)
EVENTS = []  # (time, tags)


class Reader:
    def __init__(self, name):
        self.name = name

    def get_intervals(self):
        return IntervalSet([Interval(0, 1 << 40)])

    def fetch(self, start, end, now=None, requestContext=None):
        if now is not None:
            if start > now:
                return None
            end = min(end, now)
        first, step, values = SERIES[self.name]
        begin = start - start % step + step
        stop = end - end % step + step
        if begin == stop:
            stop += step
        at = lambda t: (t - first) // step
        found = [values[at(t)] if 0 <= at(t) < len(values) else None for t in range(begin, stop, step)]
        return (begin, stop, step), found


class Finder(BaseFinder):
    def find_nodes(self, query):
        pattern = query.pattern.replace("\\", "")
        if ";" in pattern:
            if pattern in SERIES:
                yield LeafNode(pattern, Reader(pattern))
            return
        wanted = pattern.split(".")
        seen = set()
        for name in sorted(n for n in SERIES if ";" not in n):
            nodes = name.split(".")
            if len(nodes) < len(wanted):
                continue
            if not all(any(fnmatch.fnmatchcase(nodes[i], e) for e in expand_braces(wanted[i])) for i in range(len(wanted))):
                continue
            branch = ".".join(nodes[: len(wanted)])
            if len(nodes) == len(wanted):
                yield LeafNode(name, Reader(name))
            elif branch not in seen:
                seen.add(branch)
                yield BranchNode(branch)


class TagDB(BaseTagDB):
    def _find_series(self, tags, requestContext=None):
        specs = [self.parse_tagspec(t) for t in tags]
        if not any(op in ("=", "=~") and not self._empty(op, spec) or op in ("!=", "!=~") and self._empty(op[1:], spec) for _, op, spec in specs):
            raise ValueError("At least one tagspec must require a non-empty value")
        return sorted(n for n in SERIES if ";" in n and all(self._holds(TaggedSeries.parse(n).tags, s) for s in specs))

    def _empty(self, op, spec):
        return spec == "" if op == "=" else re.match("^(" + spec + ")", "") is not None

    def _holds(self, tags, spec):
        tag, op, want = spec
        value = tags.get(tag, "")
        hit = value == want if op in ("=", "!=") else re.match("^(" + want + ")", value) is not None
        return hit != op.startswith("!")

    def get_series(self, path, requestContext=None):
        return None

    def list_tags(self, tagFilter=None, limit=None, requestContext=None):
        return []

    def get_tag(self, tag, valueFilter=None, limit=None, requestContext=None):
        return None

    def list_values(self, tag, valueFilter=None, limit=None, requestContext=None):
        return []

    def tag_series(self, series, requestContext=None):
        return series

    def del_series(self, series, requestContext=None):
        return True
