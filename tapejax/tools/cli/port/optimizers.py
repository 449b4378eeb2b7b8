"""Keras's optimizers in Optax."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ....tf.values import keras_fence
from ....tf.values.types import Array
from ...seeing.tables import tables
from .observing import Applied, Optimizer
from .pieces import Refused

_TABLES = tables(Path(__file__).with_name("optimizers.ini"))
# Settings that have no equal here unless they are this.
PLAIN = {"use_ema": False, "loss_scale_factor": None, "gradient_accumulation_steps": None, "amsgrad": False}


def optax_text(optimizer: Optimizer, rate: str, scheduled: bool, at: str) -> str:
    """Code for what Optax has for a Keras optimizer.

    Args:
      rate: code for its learning rate, a number or a function of the count of updates.
      scheduled: whether it is a function.
    """
    kind, config = type(optimizer).__name__, {n: x for n, x in vars(optimizer).items() if n[0] != "_"}
    texts, clipping = _TABLES["texts"], _TABLES["clipping"]
    if kind not in texts or type(optimizer).__module__.partition(".")[0] != "keras":
        known = ", ".join(name for name in texts if " " not in name)
        raise Refused(at, "optimizer", kind=kind, known=known)
    for name, plain in (PLAIN | ({} if kind == "AdamW" else {"weight_decay": None})).items():
        if config.get(name, plain) != plain:
            raise Refused(at, "setting", kind=kind, name=name, value=config[name])
    if any(getattr(v, "constraint", None) is not None for v in keras_fence.trained_by(optimizer)):
        raise Refused(at, "constraint")
    if keras_fence.excludes(optimizer):
        raise Refused(at, "excluded")
    config["momentum"] = config.get("momentum") or None
    kind = _kind(optimizer, scheduled)
    text = texts[kind].format(**config, rate=rate)
    clips = [form.format(config[name]) for name, form in clipping.items() if config.get(name) is not None]
    return f"optax.chain({', '.join([*clips, text])})" if clips else text


def with_assigned_rate(text: str) -> str:
    """Code for an optimizer of Optax whose state has the learning rate."""
    static = ', static_args=("nesterov",)' if "nesterov" in text and "trace(" not in text else ""
    first = r"optax\.(sgd|rmsprop|adagrad|lion|scale_by_learning_rate)\("
    return re.sub(first, rf"optax.inject_hyperparams(optax.\1{static})(learning_rate=", text, count=1)


def optax_slots(applied: Applied, scheduled: bool, begin: bool) -> dict[str, list[Array]]:
    """What Optax's state has after Keras's optimizer has updated, or before: by the names of its fields, for each variable."""
    held = applied.slots_before if begin else applied.slots
    slots: dict[str, list[Array]] = {}
    for text in filter(None, _TABLES["slots"][_kind(applied.optimizer, scheduled)].split(", ")):
        name, field, *factor = text.split()
        by = {"-1": -1.0}.get("".join(factor), -1.0 / applied.rate) if factor else 1.0
        slots |= {field: [x * np.asarray(by, x.dtype) for x in held[name]]} if name in held else {}
    return slots


def counts(applied: Applied, scheduled: bool) -> bool:
    """Whether Optax's state has a count of the updates."""
    return scheduled or type(applied.optimizer).__name__ in ("Adam", "AdamW", "Lion")


def _kind(optimizer: Optimizer, scheduled: bool) -> str:
    """The name of an optimizer in the tables."""
    momentum = " with momentum" if getattr(optimizer, "momentum", None) and type(optimizer).__name__ == "SGD" else ""
    return type(optimizer).__name__ + momentum + (" and a schedule" if momentum and scheduled else "")
