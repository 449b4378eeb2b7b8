"""The sizes of the rooms, in lines of code (neither blank, nor comment, nor docstring), and the state that modules hold."""

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import tapejax

PACKAGE = Path(tapejax.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
# The lines of a room, and of its largest file. They are there to ask "does this belong here?": a room may grow past its limit by
# a twentieth before a test fails, so that one honest line never does.
LIMITS = {
    "jaxprs": (1_500, 267),
    "tape": (1_887, 250),
    "execution": (2_695, 640),
    "tf": (15_410, 730),
    "tools": (13_275, 630),
}
# The tokens of a room and its branches, since lines can be had by density. Functions over 15 ways through ruff refuses (C901).
DENSITY = {
    "jaxprs": (16_800, 400),
    "tape": (21_400, 550),
    "execution": (35_520, 951),
    "tf": (178_400, 4_400),
    "tools": (190_210, 6_204),
}
BRANCHES = ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case, ast.BoolOp
GRACE = 1.05
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of(text):
    tree = ast.parse(text)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node) is not None
        ):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_lines_are_counted():
    assert lines_of('"""A module.\n\nMore."""\n\n# why\ndef f(\n    x,\n):\n    "What."\n    return x  # so\n') == 4


@pytest.mark.parametrize("room", LIMITS)
def test_a_room_and_its_files_stay_small(room):
    counts = {str(path): lines_of(text) for path, text in TEXTS.items() if path.is_relative_to(PACKAGE / room)}
    most, largest = LIMITS[room]
    assert sum(counts.values()) <= GRACE * most
    assert max(counts.values()) <= GRACE * largest, max(counts, key=counts.get)


def density_of(text):
    """The tokens of a module, docstrings not among them, and the places at which it takes one way of several."""
    nodes = [*ast.walk(ast.parse(text))]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(isinstance(node, documented) and ast.get_docstring(node) is not None for node in nodes)
    tokens = sum(token.type not in _LAYOUT for token in tokenize.generate_tokens(io.StringIO(text).readline))
    return tokens - docstrings, sum(isinstance(node, BRANCHES) for node in nodes)


def test_density_is_counted():
    text = '"""A module."""\n\ndef f(x):\n    "What."\n    return 1 if x and 2 else [y for y in x]  # so\n'
    assert density_of(text) == (20, 3)


@pytest.mark.parametrize("room", DENSITY)
def test_a_room_does_not_become_dense(room):
    counts = [density_of(text) for path, text in TEXTS.items() if path.is_relative_to(PACKAGE / room)]
    for count, most in zip(map(sum, zip(*counts)), DENSITY[room], strict=True):
        assert count <= GRACE * most


def test_ruff_refuses_functions_that_are_complex():
    """`ruff check` runs in CI: no function of the package, nor one line of it, is excepted."""
    ruff = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert "C901" in ruff["select"] and ruff["mccabe"]["max-complexity"] <= 15
    excepted = [path for path, rules in ruff["per-file-ignores"].items() if "C901" in rules and "tapejax" in path]
    assert excepted + [str(path) for path, text in TEXTS.items() if re.search(r"noqa.*C901", text)] == []


# What modules hold that changes while a program runs. Each is a place at which two parts of a program can meet without either
# naming the other, so these numbers should fall.
MUTABLE_GLOBALS = 43
CACHES = 41
CHANGES = set("append extend insert add update setdefault pop popitem clear remove discard appendleft popleft".split())
CACHE_MAKERS = set("Cache table by_object memoised cache lru_cache WeakKeyDictionary WeakValueDictionary".split())
STATE_MAKERS = {"local", "Lock", "RLock", "count", "WeakSet"}


def called(node):
    """The last name of what is called in `node`; None if it is no call."""
    if not isinstance(node, ast.Call):
        return None
    return called(node.func) or getattr(node.func, "attr", None) or getattr(node.func, "id", None)


def changed_in(tree):
    """The names whose values the functions of a module rebind, or change by an assignment to a part, or by a method."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        own = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
        own |= {x.id for x in ast.walk(function) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                yield from node.names
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                targets = [node.func]
            for target in targets:
                part = target
                while isinstance(part, (ast.Attribute, ast.Subscript)):
                    part = part.value
                if part is not target and isinstance(part, ast.Name) and part.id not in own:
                    yield part.id


def state_of(text):
    """The mutable globals of a module, caches not among them, and how many caches its source makes."""
    tree = ast.parse(text)
    values = {}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in getattr(node, "targets", None) or [node.target]:
                values |= {target.id: node.value} if isinstance(target, ast.Name) else {}
    of_threads = {
        c.name
        for c in tree.body
        if isinstance(c, ast.ClassDef)
        for b in c.bases
        if getattr(b, "attr", "") == "local" or getattr(b, "id", "") == "Context"
    }
    made = {name for name, value in values.items() if called(value) in STATE_MAKERS | of_threads}
    mutable = {
        name for name in made | set(changed_in(tree)) if name in values and called(values[name]) not in CACHE_MAKERS
    }
    calls = [node for node in ast.walk(tree) if called(node) in CACHE_MAKERS and called(node.func) is None]
    decorated = [
        d for f in ast.walk(tree) for d in getattr(f, "decorator_list", ()) if getattr(d, "attr", "") == "cache"
    ]
    return mutable, len(calls) + len(decorated)


def test_state_is_counted():
    text = """
seen, fixed, times, here, kept = [], {}, 0, 1, Cache(3)
a = []
b: dict = {}
c = 0
d = {}
lock = threading.RLock()
made = memoised(3)(len)
class T(threading.local): pass
class U(Context): pass
t = T()
u = U()
kept = Cache(3)

@functools.cache
def f(d):
    global c
    a.append(1)
    b[1] = 2
    d[1] = 2
    kept.clear()
"""
    assert state_of(text) == ({"a", "b", "c", "lock", "t", "u"}, 4)


def test_modules_hold_little_state():
    states = {str(path): state_of(text) for path, text in TEXTS.items()}
    names = [f"{path}: {name}" for path, (mutable, _) in states.items() for name in sorted(mutable)]
    assert len(names) <= MUTABLE_GLOBALS, "\n".join(names)
    assert sum(caches for _, caches in states.values()) <= CACHES


TREES = {path: ast.parse(text) for path, text in TEXTS.items()}


def test_a_class_has_its_name_for_itself():
    """A reader who looks for a class finds one; `minimal` stands alone, and says in one file what others say in several."""
    named = Counter(
        node.name.lstrip("_")
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and path.stem != "minimal"
    )
    assert [name for name, count in named.items() if count > 1] == []


def hooks_in(path):
    """The names of other modules that a module sets, and those of its own that its function `use` sets."""
    nodes = list(ast.walk(TREES[path]))
    imported = {x.name for node in nodes if isinstance(node, ast.ImportFrom) and node.level for x in node.names}
    modules = imported & {other.stem for other in TREES}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "use":
            yield from [f"{path.stem}.{x}" for part in node.body if isinstance(part, ast.Global) for x in part.names]
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and getattr(target.value, "id", None) in modules:
                yield f"{target.value.id}.{target.attr}"


def test_names_that_other_modules_set_are_those_in_the_table():
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, table = text.partition("names are set from another module")
    rows = [row.split("|")[1] for row in table.split("\n\n")[1].splitlines()]
    listed = {row.strip(" `") for row in rows if "`" in row}
    assert {name for path in TREES for name in hooks_in(path)} == listed and len(listed) <= 6


def test_arguments_that_are_said_to_be_ignored_are():
    """The type `Ignored` is where signatures and stubs say which of TensorFlow's options change nothing here."""
    count = 0
    for tree in TREES.values():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                arguments = [x for x in ast.walk(function.args) if isinstance(x, ast.arg) and x.annotation]
                ignored = {x.arg for x in arguments if ast.unparse(x.annotation) == "Ignored"}
                used = {x.id for part in function.body for x in ast.walk(part) if isinstance(x, ast.Name)}
                assert ignored.isdisjoint(used), function.name
                count += len(ignored)
    assert count > 50


def test_the_readme_says_how_long_the_wrapper_is():
    lines = sum(
        lines_of(text) for path, text in TEXTS.items() if path.relative_to(PACKAGE).parts[0] in ("jaxprs", "tape")
    )
    for path in (PACKAGE.parent / "README.md", PACKAGE / "tape" / "__init__.py"):
        (said,) = re.findall(r"some ([\d,]+) lines", path.read_text(encoding="utf-8"))
        assert abs(int(said.replace(",", "")) - lines) <= 0.03 * lines


def test_the_architecture_lists_the_files_of_the_core():
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    sections = {part.partition("/`")[0]: part for part in text.split("\n## `")}
    for room, folder in (
        ("jaxprs",) * 2,
        ("tape",) * 2,
        ("execution",) * 2,
        ("tools", "tools/seeing"),
        ("tools", "tools/writing"),
    ):
        listed = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+)`", sections[room])}
        files = {path.stem for path in TEXTS if path.parent == PACKAGE / folder} - {"__init__"}
        assert files - listed == set(), folder


def functions_assigning(name):
    return [
        function.name
        for tree in TREES.values()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any(isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x.id == name for x in ast.walk(function))
    ]


def test_few_variables_are_called_found():
    """A name that says nothing of what it holds."""
    assert 0 < len(functions_assigning("found")) <= 52


def test_what_conftest_lists_is_there(request):
    """A test that was renamed would run in all its cases, or one that is marked in no part of CI, unseen."""
    conftest = next(p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "SAMPLED"))
    here = Path(__file__).parent
    paths = [*here.rglob("test_*.py"), *here.rglob("keras_on_jax/*.py")]
    files = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    assert [
        (f, name) for f, names in conftest.SAMPLED.items() for name in names.split() if f"test_{name}" not in files[f]
    ] == []
    assert {*conftest.PROCESSES, *conftest.SOME_PROCESSES} <= {*files}
    assert sorted(f for f, text in files.items() if "\n@pytest.mark.processes" in text) == conftest.SOME_PROCESSES
