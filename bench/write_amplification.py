"""Published closed forms of write amplification under uniformly random writes in the long run."""

from __future__ import annotations

import math

from flash import FlashTiming, GarbageCollection, Shape


def settled(shape: Shape) -> float:
    """Write amplification, in the limit of many blocks; 1024 of them are within 0.2 % of it.

    α is flash over user capacity, n the pages of a block. FIFO: between two collections of a block the host writes
    α(1 - u) user capacities, which a page survives with the probability u = exp(-α(1 - u)), and A = 1/(1 - u) =
    α/(α + W(-α e^-α)) with Lambert's W (Menon 1995; Robinson 1996; Desnoyers, SYSTOR 2012, eq. 4; Xiang & Kurkoski
    2012). Greedy: 1/k of the same for kα, k = 1 + 1/2n (Desnoyers 2012, eq. 12); as n grows, both are alike.
    That copies are separated changes nothing here, where no page is more likely to be written than another.
    ``ValueError`` for a window: no closed form is known.
    """
    from scipy.special import lambertw

    if shape.window is not None:
        raise ValueError("the amplification of a windowed choice lies between FIFO and greedy, in no closed form")
    scale = 1 + 0.5 / shape.pages_per_block if shape.collection is GarbageCollection.GREEDY else 1.0
    alpha = scale * (shape.user_pages + shape.spare_pages) / shape.user_pages
    return float(alpha / (alpha + lambertw(-alpha * math.exp(-alpha)).real)) / scale


def settled_iops(shape: Shape, timing: FlashTiming) -> float:
    """Writes of the host a second, as ``flash.iops`` counts them."""
    amplification = settled(shape)
    copied = (amplification - 1) * timing.read_ns
    return 1e9 / (amplification * (timing.program_ns + timing.erase_ns / shape.pages_per_block) + copied)
