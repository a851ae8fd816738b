"""Without Ray, or without a cluster, one sentence says what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fcdd.batch.cluster import connected
from fcdd.errors import FcddError


def test_without_ray_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from fcdd.errors import FcddError\nfrom fcdd.batch.cluster import connected\n"
        "try:\n    connected().__enter__()\nexcept FcddError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "--on ray needs Ray: pip install 'fcdd[cluster]'\n"


def test_without_a_cluster_at_the_address_a_sentence_says_so() -> None:
    with pytest.raises(FcddError, match="no Ray cluster at 127"), connected("127.0.0.1:1"):
        pass
