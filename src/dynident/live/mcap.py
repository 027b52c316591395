"""Messages as an MCAP file, which grows while they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dynident.core.errors import InputError, name_missing_package
from dynident.core.version import VERSION
from dynident.live.messages import Message, build_schemas, split_into_topics

if TYPE_CHECKING:
    from mcap.writer import Writer

CHUNK = 1 << 14
"""Bytes of messages that are packed together, and reach the file together."""


class McapFile:
    """Messages in a file: JSON with JSON schemas, a channel a topic.

    It is made with the first message, in the place of an earlier one. Its end is the index that
    readers look for: `close` writes it, whatever ended the run.

    Raises
    ------
    InputError
        When the package `mcap` is not installed.
    """

    def __init__(self, path: Path) -> None:
        with name_missing_package(f"{path}: needs the package mcap: pip install 'dynident[live]'"):
            import mcap.writer
        self.path = path
        self._make = mcap.writer.Writer
        self._file: BinaryIO | None = None
        self._writer: Writer | None = None
        self._channels: dict[str, int] = {}

    def write(self, message: Message) -> None:
        """Put a message at the end.

        Raises
        ------
        InputError
            When the file cannot be written, or for a time before zero, which MCAP cannot say.
        """
        if message.time < 0.0:
            raise InputError(
                f"{self.path}: cannot hold the time {message.time:g} s, which is before zero; "
                "shift the time of the stream"
            )
        with self._name_in_errors():
            self._append(message)

    @contextmanager
    def _name_in_errors(self) -> Iterator[None]:
        """Where it cannot be written it is left as it is, without an index."""
        try:
            yield
        except OSError as error:
            self._writer = None
            if self._file is not None:
                with suppress(OSError):  # what could not be written cannot be flushed either
                    self._file.close()
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error

    def _append(self, message: Message) -> None:
        if self._writer is None or self._file is None:
            self._file = self.path.open("wb")
            self._writer = self._make(self._file, chunk_size=CHUNK)
            self._writer.start(library=f"dynident {VERSION}")
        stamp = round(1e9 * message.time)
        for topic, plain in split_into_topics(message):
            if topic not in self._channels:
                schema = json.dumps(build_schemas(message)[topic]).encode()
                kind = self._writer.register_schema(f"dynident.{topic}", "jsonschema", schema)
                self._channels[topic] = self._writer.register_channel(topic, "json", kind)
            data = json.dumps(plain, allow_nan=False).encode()
            self._writer.add_message(self._channels[topic], stamp, data, stamp)
        self._file.flush()

    def close(self) -> None:
        """Write the index, where there is a file that has none yet."""
        if self._writer is not None and self._file is not None:
            writer, self._writer = self._writer, None
            with self._name_in_errors(), self._file:
                writer.finish()  # type: ignore[no-untyped-call]
