from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.rig.fio.jobs import aligned_share, split

BLOCKS = st.sampled_from([512, 4096, 131072, 1 << 20, 3 << 16])


@given(sectors=st.integers(1, 10**7), jobs=st.integers(1, 24), block=BLOCKS)
def test_a_split_covers_every_byte_once(sectors: int, jobs: int, block: int) -> None:
    size = sectors * 512
    parts = list(split(size, jobs, block))
    end = 0
    for part in parts:
        assert part.offset_bytes == end
        assert part.size_bytes > 0
        assert part.size_bytes % part.block_bytes == 0
        assert part.block_bytes % 512 == 0
        assert part.block_bytes <= block
        end += part.size_bytes
    assert end == size
    assert len(parts) <= jobs + 1


def test_a_split_is_even() -> None:
    sizes = [part.size_bytes for part in split(480_103_981_056, 8, 131072)]
    assert max(sizes[:8]) - min(sizes[:8]) < 9 * 1024 * 1024


@given(sectors=st.integers(1, 10**7), jobs=st.integers(1, 24), block=BLOCKS)
def test_share_is_whole_blocks_and_fits_once_a_job(sectors: int, jobs: int, block: int) -> None:
    share = aligned_share(sectors * 512, jobs, block)
    assert share % block == 0
    assert share * jobs <= sectors * 512
    assert share or sectors * 512 < jobs * block
