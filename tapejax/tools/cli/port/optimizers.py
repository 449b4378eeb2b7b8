"""Keras's optimizers in Optax."""

from __future__ import annotations

from .observing import Optimizer
from .pieces import Refused

_BETAS = "b1={beta_1!r}, b2={beta_2!r}"
_EPS = "eps=lambda count: {epsilon!r} / jnp.sqrt(1 - {beta_2!r} ** (count + 1))"
_DECAY = ", weight_decay={weight_decay!r}"
_LOOK = "Keras adds epsilon before it corrects the bias; else this is optax."
# By the name of Keras's class: code, and what its reader should know.
TEXTS = {
    "SGD": ("optax.sgd({rate})", ""),
    "SGD with momentum": ("optax.sgd({rate}, momentum={momentum!r}, nesterov={nesterov})", ""),
    "SGD with momentum and a schedule": (  # Keras's velocity has the learning rate in it
        "optax.chain(optax.scale_by_learning_rate({rate}), optax.trace(decay={momentum!r}, nesterov={nesterov}))",
        "",
    ),
    "Adam": (
        f"optax.inject_hyperparams(optax.adam)(learning_rate={{rate}}, {_BETAS}, {_EPS})",
        f"{_LOOK}adam({{rate}}, {_BETAS}, eps={{epsilon!r}})",
    ),
    "AdamW": (
        f"optax.inject_hyperparams(optax.adamw)(learning_rate={{rate}}, {_BETAS}, {_EPS}{_DECAY})",
        f"{_LOOK}adamw({{rate}}, {_BETAS}, eps={{epsilon!r}}{_DECAY})",
    ),
    "RMSprop": (
        "optax.rmsprop({rate}, decay={rho!r}, eps={epsilon!r}, centered={centered}, momentum={momentum!r})",
        "",
    ),
    "Adagrad": (
        "optax.adagrad({rate}, initial_accumulator_value={initial_accumulator_value!r}, eps={epsilon!r})",
        "",
    ),
    "Lion": (f"optax.lion({{rate}}, {_BETAS}, weight_decay=0.0)", ""),
}
# Settings that have no equal here unless they are this.
PLAIN = {"use_ema": False, "loss_scale_factor": None, "gradient_accumulation_steps": None, "amsgrad": False}
CLIPPING = {
    "global_clipnorm": "optax.clip_by_global_norm({0!r})",
    "clipvalue": "optax.clip({0!r})",
    "clipnorm": "optax.stateless(lambda g, _: jax.tree.map(lambda x: x * {0!r} / jnp.maximum(jnp.linalg.norm(x), {0!r}), g))",
}


def optax_text(optimizer: Optimizer, rate: str, scheduled: bool, at: str) -> tuple[str, str]:
    """Code for what Optax has for a Keras optimizer, and what the reader of it should know.

    Args:
      rate: code for its learning rate, a number or a function of the count of updates.
      scheduled: whether it is a function.
    """
    kind, config = type(optimizer).__name__, optimizer.get_config()
    if kind not in TEXTS or type(optimizer).__module__.partition(".")[0] != "keras":
        known = ", ".join(name for name in TEXTS if " " not in name)
        raise Refused(at, "optimizer", kind=kind, known=known)
    for name, plain in (PLAIN | ({} if kind == "AdamW" else {"weight_decay": None})).items():
        if config.get(name, plain) not in (plain, False if name == "use_ema" else plain):
            raise Refused(at, "setting", kind=kind, name=name, value=config[name])
    if any(getattr(v, "constraint", None) is not None for v in optimizer._trainable_variables):
        raise Refused(at, "constraint")
    if getattr(optimizer, "_exclude_from_weight_decay", None):
        raise Refused(at, "excluded")
    config["momentum"] = config.get("momentum") or None
    if kind == "SGD" and config["momentum"]:
        kind = "SGD with momentum and a schedule" if scheduled else "SGD with momentum"
    text, look = (each.format(**(config | {"rate": rate})) for each in TEXTS[kind])
    clips = [form.format(config[name]) for name, form in CLIPPING.items() if config.get(name) is not None]
    return (f"optax.chain({', '.join([*clips, text])})" if clips else text), look
