"""What the packed chunks of bags unpack to, before anybody unpacks them.

The layouts are those of the MCAP format and of version 2.0 of ROS 1's bags; what is not laid out
like that is left to the reader, which refuses it.
"""

from __future__ import annotations

import bz2
import mmap
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dynident.readers.table import refuse_bomb

BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
MCAP, MCAP_CHUNK = b"\x89MCAP0\r\n", 0x06
BAG, BAG_CHUNK = b"#ROSBAG V2.0\n", b"\x05"
FRAME = b"\x28\xb5\x2f\xfd"
"""How what Zstandard has packed begins."""


def import_zstandard() -> Any:
    """The module that unpacks Zstandard: Python's own, or the one that rosbags takes instead."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def refuse_bombs(path: Path) -> None:
    """Refuse files with chunks that grow out of all proportion, or that do so as a whole."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(FRAME)] == FRAME:
            unpack = import_zstandard().ZstdDecompressor
            _refuse_stream_bomb(str(path), unpack, data, 0, len(data))
        for packing, start, size, unpacked in _list_chunks(data):
            refuse_bomb(str(path), size, unpacked)
            if packing == "zstd":
                _refuse_dishonest_frame(data[start : start + size], unpacked)
            elif packing == "bz2":
                _refuse_stream_bomb(str(path), bz2.BZ2Decompressor, data, start, start + size)


def _list_chunks(data: mmap.mmap) -> Iterator[tuple[str, int, int, int]]:
    """Packing, place, size and unpacked size of each chunk."""
    if data[: len(MCAP)] == MCAP:
        return _list_mcap_chunks(data)
    return _list_bag_chunks(data) if data[: len(BAG)] == BAG else iter(())


def _list_mcap_chunks(data: mmap.mmap) -> Iterator[tuple[str, int, int, int]]:
    at = len(MCAP)
    while at + 9 <= len(data) - len(MCAP):
        code, size = struct.unpack_from("<BQ", data, at)
        if code == MCAP_CHUNK:
            unpacked, _, length = struct.unpack_from("<QII", data, at + 9 + 16)
            start = at + 9 + 32 + length
            packing = data[start - length : start].decode()
            yield packing, start + 8, *struct.unpack_from("<Q", data, start), unpacked
        at += 9 + size


def _list_bag_chunks(data: mmap.mmap) -> Iterator[tuple[str, int, int, int]]:
    at = len(BAG)
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        fields: dict[bytes, bytes] = {}
        place, at = at + 4, at + 4 + length
        while place < at:
            (own,) = struct.unpack_from("<I", data, place)
            key, _, value = data[place + 4 : place + 4 + own].partition(b"=")
            fields[key] = value
            place += 4 + own
        (size,) = struct.unpack_from("<I", data, at)
        if fields.get(b"op") == BAG_CHUNK:
            (unpacked,) = struct.unpack("<I", fields[b"size"])
            yield fields[b"compression"].decode(), at + 4, size, unpacked
        at += 4 + size


def _refuse_dishonest_frame(packed: bytes, unpacked: int) -> None:
    """Refuse what is not one frame of Zstandard that says itself how long it is."""
    zstd = import_zstandard()
    says, length = zstd.get_frame_info(packed).decompressed_size, zstd.get_frame_size(packed)
    if says != unpacked:
        raise ValueError(f"a chunk of {unpacked} bytes does not unpack to as many")
    if length != len(packed):
        raise ValueError("a chunk is more than one frame of Zstandard")


def _refuse_stream_bomb(
    place: str, make: Callable[[], Any], data: mmap.mmap, start: int, stop: int
) -> None:
    """Refuse what streams one behind another grow to, which do not say how long they are."""
    stream, count, size, part = make(), 0, stop - start, b""
    while start < stop or part or not stream.needs_input:
        if stream.eof:
            part, stream = stream.unused_data, make()
        if stream.needs_input and not part:
            part, start = data[start : min(start + BLOCK, stop)], start + BLOCK
        count += len(stream.decompress(part, BLOCK))
        part = b""
        refuse_bomb(place, size, count)


def refuse_message_bombs(place: str, messages: Iterable[bytes]) -> None:
    """Refuse messages, each packed by Zstandard, that grow out of all proportion."""
    packed = unpacked = 0
    for message in messages:
        says = import_zstandard().get_frame_info(message).decompressed_size
        if says is None:
            raise ValueError("a message does not say how long it is unpacked")
        _refuse_dishonest_frame(message, says)
        packed, unpacked = packed + len(message), unpacked + says
        refuse_bomb(place, packed, unpacked)
