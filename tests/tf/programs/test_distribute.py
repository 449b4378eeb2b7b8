"""Programs of `tf.distribute` on one device, on two, on four, and in two processes: TensorFlow's results."""

import json
from pathlib import Path

import numpy as np
import pytest
import workers

import tapejax as tf
from tests.processes import finish, start

PROGRAMS = Path(__file__).with_name("replicated.py")
KEPT = json.loads(PROGRAMS.with_suffix(".json").read_text(encoding="utf-8"))
WIDE = pytest.param("1", id="64-bit", marks=pytest.mark.slow)


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, list) else [x]


def agree(found, kept):
    assert list(found) == list(kept)
    for name, expected in kept.items():
        pairs = [*zip(flat(found[name]), flat(expected), strict=True)]
        texts = [(x, y) for x, y in pairs if isinstance(y, str)]
        assert all(x == y for x, y in texts), name
        numbers = np.array([pair for pair in pairs if not isinstance(pair[1], str)], float)
        np.testing.assert_allclose(*numbers.T, rtol=2e-5, atol=1e-6, err_msg=name)


# Every other program on two devices and with 64-bit types, and the rest on four: each count and width, all of them at night.
EVERY_OTHER, REST = slice(None, None, 2), slice(1, None, 2)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("count", "wide", "part"),
    [
        pytest.param("1", "0", slice(None), id="1"),
        pytest.param("2", "1", EVERY_OTHER, id="2-64-bit"),
        pytest.param("4", "0", REST, id="4"),
        pytest.param("2", "1", REST, id="2-64-bit-rest", marks=pytest.mark.slow),
        pytest.param("4", "0", EVERY_OTHER, id="4-rest", marks=pytest.mark.slow),
        pytest.param("2", "0", slice(None), id="2", marks=pytest.mark.slow),
        *[pytest.param(count, "1", slice(None), id=f"{count}-64-bit", marks=pytest.mark.slow) for count in ("1", "4")],
    ],
)
def test_programs(count, wide, part):
    kept = dict([*KEPT[count].items()][part])
    (printed,) = finish(start(PROGRAMS, "tapejax", count, *kept, JAX_ENABLE_X64=wide))
    agree(json.loads(printed.splitlines()[-1]), kept)


@pytest.mark.processes
@pytest.mark.parametrize("wide", ["0", WIDE])
def test_programs_of_two_processes(wide):
    found = workers.both("tapejax", JAX_ENABLE_X64=wide)
    for each, kept in zip(found, json.loads(workers.KEPT.read_text(encoding="utf-8")), strict=True):
        agree(each, kept)


@pytest.mark.processes
@pytest.mark.parametrize("count", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_program_of_a_user(count, tmp_path):
    program = PROGRAMS.with_name("images.py")
    kept = json.loads(program.with_suffix(".json").read_text(encoding="utf-8"))
    (printed,) = finish(start(program, "tapejax", count, tmp_path / "kept"))
    agree({count: json.loads(printed.splitlines()[-1])}, {count: kept[count]})


def test_a_cluster(monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": "1"}}))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    spec = resolver.cluster_spec()
    assert (spec.as_dict(), spec.jobs, spec.job_tasks("worker")) == (cluster, ["chief", "worker"], ["b:1", "c:1"])
    assert spec.num_tasks("chief") == 1
    assert tf.train.ClusterSpec(spec).as_dict() == tf.train.ClusterSpec(cluster).as_dict() == cluster
    joined = []
    monkeypatch.setattr("jax.distributed.initialize", lambda *given: joined.append(given))
    tf.distribute.MultiWorkerMirroredStrategy()
    assert joined == [("a:1", 3, 2)]
    own = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="chief", task_id=0)
    assert tf.distribute.MultiWorkerMirroredStrategy(own).cluster_resolver is own
    assert joined[1:] == [("a:1", 3, 0)]
    monkeypatch.delenv("TF_CONFIG")
    alone = tf.distribute.MultiWorkerMirroredStrategy().cluster_resolver
    assert (alone.task_type, alone.task_id, alone.cluster_spec().as_dict()) == (None, None, {})
