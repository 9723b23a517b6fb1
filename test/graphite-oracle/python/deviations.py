"""Deliberate deviations of Shale, made to graphite-web, so that what differs because of one can be compared, too.

Each is described in docs/graphite.md. The names are those of the tally.
"""
import contextlib
import copy
import functools
import inspect
import re
from unittest import mock

import graphite.render.evaluator as evaluator
import graphite.render.functions as functions
from graphite.errors import NormalizeEmptyResultError
from graphite.functions.params import validateParams
from graphite.render.grammar_unsafe import grammar as plain


def normalize(lists):
    """Consolidates series of different steps in buckets that begin at multiples of the common step."""
    series = [s for l in lists or () for s in l]
    if not series:
        raise NormalizeEmptyResultError()
    step = functools.reduce(functions.lcm, [int(s.step) for s in series])
    start, end = min(s.start for s in series), max(s.end for s in series)
    if all(s.step == series[0].step for s in series):
        end -= (end - start) % step
        return series, start, end, step
    first = start - start % step
    if first < start and first + step < end:
        first += step
    for s in series:
        bucket(s, first, step)
    end -= (end - first) % step
    return series, first, end, step


def bucket(s, first, step):
    n = step // int(s.step)
    buckets = []
    for i, v in enumerate(list(s)):
        at = s.start + i * s.step
        if at < first:
            continue
        k = int((at - first) // step)
        while len(buckets) <= k:
            buckets.append([])
        buckets[k].append(v)
    values = []
    for b in buckets:
        present = [v for v in b if v is not None]
        if present and len(present) / n >= s.xFilesFactor:
            cf = s.consolidationFunc
            if cf == "avg_zero":
                values.append(sum(present) / len(b))
            else:
                values.append(CONSOLIDATE[cf](present))
        else:
            values.append(None)
    del s[:]
    s.extend(values)
    s.valuesPerPoint = 1
    s.start, s.step = first, step


CONSOLIDATE = {
    "sum": sum, "average": lambda v: sum(v) / len(v), "avg": lambda v: sum(v) / len(v), "max": max, "min": min,
    "first": lambda v: v[0], "last": lambda v: v[-1],
}


def divided(f):
    """Returns the code of a function that divides, with normalize in the place of its own consolidation."""
    source = inspect.getsource(f)
    begin = source.index("    for s in bothSeries:")
    end = source.index("    values = (", begin)
    source = source[:begin] + "    bothSeries, start, end, step = normalize([[copy.copy(s) for s in bothSeries]])\n" + source[end:]
    scope = {}
    exec(source, {}, scope)
    return scope[f.__name__].__code__


def percent():
    """Returns the code of asPercent that leaves a series without a partner on its own grid, not on that of the last pair."""
    source = inspect.getsource(functions.asPercent)
    source, n = re.subn(r"( +)resultValues = \[\s*None for v1 in (\w+)\s*\]\n", r"\g<0>\1start, end, step = \2.start, \2.end, \2.step\n", source)
    assert n == 2
    scope = {}
    exec(source, {}, scope)
    return scope["asPercent"].__code__


def weighted():
    """Returns the code of weightedAverage that multiplies and divides values of the same time."""
    source = inspect.getsource(functions.weightedAverage)
    for line, a, b in (("productValues = [", "seriesAvg", "seriesWeight"), ("resultValues = [", "sumProducts", "sumWeights")):
        source, n = re.subn(
            r"( +)" + re.escape(line),
            r"\1({0}, {1}), start, end, step = normalize([[copy.copy({0}), copy.copy({1})]])\n\1{0}.start, {0}.end = start, end\n\g<0>".format(a, b),
            source,
        )
        assert n == 1, line
    scope = {}
    exec(source, {}, scope)
    return scope["weightedAverage"].__code__


def spread(series, reference, default, defaults):
    """Returns what fills the gaps of a series: by time, if a reference has another step."""
    if all(r.step == series.step for r in reference):
        return defaults
    filled = []
    for i in range(len(series)):
        begin = series.start + i * series.step
        end = begin + series.step
        has = any(v is not None and at < end and at + r.step > begin for r in reference for at, v in zip(range(int(r.start), 1 << 40, int(r.step)), r))
        filled.append(default if has else None)
    return filled


def filling():
    """Returns the code of transformNull that fills by time, and moves no values if the reference is longer."""
    source = inspect.getsource(functions.transformNull)
    before = "izip_longest(series, defaults)]"
    assert before in source
    source = source.replace(before, "izip_longest(series, spread(series, referenceSeries, default, defaults))][:len(series)]")
    scope = {}
    exec(source, {}, scope)
    return scope["transformNull"].__code__


functions.copy, functions.spread = copy, spread
CHANGED = [(f, f.__code__, divided(f)) for f in (functions.divideSeries, functions.divideSeriesLists)]
CHANGED.append((functions.asPercent, functions.asPercent.__code__, percent()))
CHANGED.append((functions.weightedAverage, functions.weightedAverage.__code__, weighted()))
CHANGED.append((functions.transformNull, functions.transformNull.__code__, filling()))


@contextlib.contextmanager
def changed():
    """Changes the code of functions, which the table of functions holds."""
    for f, _, code in CHANGED:
        f.__code__ = code
    try:
        yield
    finally:
        for f, original, _ in CHANGED:
            f.__code__ = original


class Rest:
    """An expression without its last piped calls."""

    template = pathExpression = call = number = string = boolean = none = infinity = ""

    def __init__(self, expression, calls):
        self.expression = Calls(expression, calls)


class Calls:
    def __init__(self, expression, calls):
        self._expression, self.pipedCalls = expression, calls

    def __getattr__(self, name):
        return getattr(self._expression, name)


def evaluate_tokens(original):
    """Leaves the tree as it is, so that a window that is evaluated again has its pipes."""

    def evaluate(context, tokens, replacements=None, pipedArg=None):
        if tokens.expression and not tokens.template:
            calls = list(tokens.expression.pipedCalls)
            if calls:
                return evaluate(context, calls[-1], replacements, Rest(tokens.expression, calls[:-1]))
            return evaluate(context, tokens.expression, replacements)
        if tokens.template or not tokens.call or tokens.pathExpression or tokens.call.funcname in ("template", "seriesByTag"):
            return original(context, tokens, replacements, pipedArg)
        try:
            func = evaluator.SeriesFunction(tokens.call.funcname)
        except KeyError:
            return original(context, tokens, replacements, pipedArg)
        raw = list(tokens.call.args or [])
        if pipedArg is not None:
            raw.insert(0, pipedArg)
        args = [evaluate(context, a, replacements) for a in raw]
        context["args"] = raw
        kwargs = {k.argname: evaluate(context, k.args[0], replacements) for k in tokens.call.kwargs}
        if hasattr(func, "params"):
            try:
                args, kwargs = validateParams(tokens.call.funcname, func.params, args, kwargs)
            except evaluator.InputParameterError:
                pass  # graphite-web only logs it by default
        try:
            return func(context, *args, **kwargs)
        except NormalizeEmptyResultError:
            return []

    return evaluate


class Whole:
    """A grammar that refuses a target with text after its end."""

    def parseString(self, text):
        return plain.parseString(text, parseAll=True)


def patches(name):
    if name == "steps":
        return [mock.patch.object(functions, "normalize", normalize), changed()]
    if name == "pipes":
        return [mock.patch.object(evaluator, "evaluateTokens", evaluate_tokens(evaluator.evaluateTokens))]
    if name == "parse":
        return [mock.patch.object(m, "grammar", Whole()) for m in (evaluator, functions)]
    raise ValueError(name)


@contextlib.contextmanager
def made(names):
    with contextlib.ExitStack() as stack:
        for name in names:
            for p in patches(name):
                stack.enter_context(p)
        yield
