"""A card of each generation, from its spec file, by the compiler's target."""

from solkit.declare.card import Card
from solkit.plan.specs import load_specs

_SPECS = load_specs()


def card(name: str) -> Card:
    found = Card.of(_SPECS[name])
    assert found is not None
    return found


H200 = card("h200_sxm")
CARDS = {
    "sm_75": card("t4"),
    "sm_80": card("a100_sxm4_80gb"),
    "sm_86": card("rtx_3090"),
    "sm_89": card("l4"),
    "sm_90a": H200,
    "sm_100a": card("b200"),
    "sm_110a": card("jetson_thor"),
    "sm_120a": card("rtx_5090"),
}
