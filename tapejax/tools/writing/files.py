"""What the source of a file says of names in it."""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...jaxprs.cache import memoised
from .expressions import Range, range_of

# What programs usually call JAX's modules, each with what printed code calls it.
MODULES = {"jax": "jax", "jnp": "jnp", "np": "np", "lax": "jax.lax", "jsp": "jax.scipy", "nn": "jax.nn"}
_PRINTED = {"jax.numpy": "jnp", "numpy": "np", "jax": "jax"}


class FileNames(NamedTuple):
    """What a file calls JAX's modules and functions, with what printed code calls them; by where values are in
    ``a, b = f(x), g(x)`` the name of each, and the line of all; the parameters of functions by their first lines, and by theirs
    the names of lambdas that are called more than once."""

    modules: Mapping[str, str]
    pairs: Mapping[Range, tuple[str, int]]
    parameters: Mapping[int, Sequence[str]]
    lambdas: Mapping[int, str]


def source_of(file: str) -> FileNames:
    """What the source of a file says; of one that cannot be read what is usual."""
    return _read("".join(linecache.getlines(file)))


@memoised(64)
def _read(text: str) -> FileNames:
    source = FileNames(dict(MODULES), {}, {}, {})
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return source
    modules: dict[str, str | None] = {}
    pairs: dict[Range, tuple[str, int]] = {}
    parameters: dict[int, Sequence[str]] = {}
    lambdas = _lambdas(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    path = each.name if each.asname else each.name.partition(".")[0]
                    modules[each.asname or path] = _printed(path)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                modules |= {each.asname or each.name: _printed(f"{module}.{each.name}") for each in names}
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                own = [(name, x) for name, x in zip(names, values, strict=True) if not isinstance(x, ast.Name)]
                pairs |= {range_of(x): (name.id, node.lineno) for name, x in own if isinstance(name, ast.Name)}
            case ast.FunctionDef(args=args, decorator_list=decorators):
                first = min([node.lineno, *(each.lineno for each in decorators)])
                parameters[first] = [each.arg for each in (*args.posonlyargs, *args.args)]
                lambdas |= _lambdas(node)
    known = {name: text for name, text in (MODULES | modules).items() if text is not None}
    return FileNames(known, pairs, parameters, lambdas)


def _lambdas(scope: ast.AST) -> dict[int, str]:
    """`FileNames.lambdas` of those in a function, or a file; of the others there that they are lambdas."""
    nodes = [*ast.walk(scope)]
    called = [node.func for node in nodes if isinstance(node, ast.Call)]  # ``f(x)``, or ``jax.grad(f)(x)``
    called = [x.args[0] if isinstance(x, ast.Call) and x.args else x for x in called]
    count, named = Counter(x.id for x in called if isinstance(x, ast.Name)), dict[int, str]()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(lineno=line)):
                named[line] = name if count[name] > 1 else "<lambda>"
    return named


def _printed(path: str) -> str | None:
    """What printed code calls a module or function of JAX's; None for others."""
    root = next((root for root in _PRINTED if path == root or path.startswith(f"{root}.")), None)
    return None if root is None else _PRINTED[root] + path[len(root) :]
