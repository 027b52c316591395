"""Words for messages."""

from __future__ import annotations

import pytest

from dynident.core.text import format_series


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["Ia1", "fv1", "Ia2", "fv2"], "Ia1, fv1, Ia2, fv2"),
        (["Ia1", "off1", "Ia2", "Ia3", "off3"], "Ia1 ... Ia3, off1, off3"),
        (["off9", "off10", "off11", "Iam6", "m"], "off9 ... off11, Iam6, m"),
        ([], ""),
    ],
)
def test_names_that_count_up_are_one_series(names, words):
    assert format_series(names) == words
