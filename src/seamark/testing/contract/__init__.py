"""The log contract as a test class. An engine is proven by inheriting it:

class TestMine(LogContract):
    def make_rig(self, place: Path) -> LogRig:
        return MyRig(place)
"""

from __future__ import annotations

import pytest

from seamark.testing.contract.appends import AppendContract
from seamark.testing.contract.deletion import DeletionContract
from seamark.testing.contract.losses import LossContract
from seamark.testing.contract.news import NewsContract
from seamark.testing.contract.reads import ReadContract
from seamark.testing.contract.restarts import RestartContract
from seamark.testing.contract.retention import RetentionContract
from seamark.testing.contract.shelf import ShelfContract
from seamark.testing.contract.streams import StreamsContract

__all__ = ["LogContract"]


@pytest.mark.asyncio
class LogContract(
    AppendContract,
    ReadContract,
    RetentionContract,
    DeletionContract,
    StreamsContract,
    NewsContract,
    ShelfContract,
    LossContract,
    RestartContract,
):
    """Every sentence of `seamark.log.protocol`, for one engine."""
