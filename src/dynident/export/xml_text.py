"""XML text changed tag by tag: every character that is not asked for stays as it was."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from dynident.core.errors import InputError

NAME = re.compile(rb"<[^\s/>]+")
ATTRIBUTE = re.compile(rb"\s+([^\s=/>]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
DECLARED = re.compile(rb"^(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
"""Byte order marks."""


@dataclass(frozen=True)
class XmlTag:
    """Where an element stands in its file's text."""

    start: int
    inner: int
    """`start`, `inner`: where its start tag begins, and the place after it."""
    close: int
    end: int
    """`close`, `end`: where its end tag begins, and the place after it; `inner` both when it has
    none."""


@dataclass
class XmlText:
    """An XML file's text, and what is to be changed in it."""

    path: Path
    raw: bytes | None = None
    """Its content, where that is not the file's."""
    encoding: str = field(init=False)
    text: bytes = field(init=False)
    tags: list[XmlTag] = field(init=False)
    edits: list[tuple[int, int, bytes]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        raw = self.path.read_bytes() if self.raw is None else self.raw
        found = DECLARED.match(raw)
        declared = found[1].decode() if found else "utf-8"
        self.encoding = next((name for mark, name in MARKS if raw.startswith(mark)), declared)
        try:
            self.text = raw.decode(self.encoding).encode()
            self.tags = _find_tags(self.text)
        except (LookupError, UnicodeError, expat.ExpatError) as error:
            raise InputError(f"{self.path}: cannot be changed in place ({error})") from error

    @property
    def changed(self) -> bool:
        """Whether anything is to be changed."""
        return bool(self.edits)

    def set(self, index: int, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
        """Give an element attributes, and take some away.

        Parameters
        ----------
        index : int
            The element's number among the file's, by their start tags.
        values : mapping of str to str
            Without characters that XML would have to escape.
        """
        tag = self.tags[index]
        left = dict(values)
        last = NAME.match(self.text, tag.start).end()  # type: ignore[union-attr]
        for each in ATTRIBUTE.finditer(self.text, last, tag.inner):
            last = each.end()
            name = each[1].decode()
            if name in left:
                quote = each[2][:1]
                new = quote + left.pop(name).encode() + quote
                if new != each[2]:
                    self.edits.append((*each.span(2), new))
            elif name in drop:
                self.edits.append((*each.span(), b""))
        more = "".join(f' {name}="{value}"' for name, value in left.items())
        if more:
            self.edits.append((last, last, more.encode()))

    def insert(self, index: int, line: str) -> None:
        """Put a line into an element that has children, as its first, indented as they are."""
        tag = self.tags[index]
        own = self.indentation(tag.start)
        self.edits.append((tag.inner, tag.inner, f"{own}{self.step(tag, own)}{line}".encode()))

    def append(self, index: int, lines: str) -> None:
        """Put lines into an element as its last children, indented as the others are."""
        tag = self.tags[index]
        own = self.indentation(tag.start) or "\n"
        step = self.step(tag, own)
        text = "".join(f"{own}{step}{line}" for line in lines.splitlines())
        if tag.end == tag.inner:  # <name/>
            name = NAME.match(self.text, tag.start)[0][1:].decode()  # type: ignore[index]
            self.edits.append((tag.inner - 2, tag.inner, f">{text}{own}</{name}>".encode()))
            return
        place = len(self.text[: tag.close].rstrip())
        tail = "" if b"\n" in self.text[place : tag.close] else own
        self.edits.append((place, place, f"{text}{tail}".encode()))

    def around(self, index: int, before: str, after: str) -> None:
        """Put lines before and after an element."""
        tag = self.tags[index]
        own = self.indentation(tag.start)
        self.edits.append(
            (tag.start, tag.start, "".join(f"{b}{own}" for b in before.splitlines()).encode())
        )
        self.edits.append(
            (tag.end, tag.end, "".join(f"{own}{a}" for a in after.splitlines()).encode())
        )

    def take(self, index: int) -> str:
        """Take an element out, with the white space before it; returns it as it was to become."""
        tag = self.tags[index]
        taken = self._changed(tag.start, tag.end).decode()
        begin = len(self.text[: tag.start].rstrip())
        inside = [edit for edit in self.edits if tag.start <= edit[0] and edit[1] <= tag.end]
        self.edits = [edit for edit in self.edits if edit not in inside]
        self.edits.append((begin, tag.end, b""))
        return taken

    def replace(self, index: int, content: bytes) -> None:
        """Put other text in the place of an element."""
        tag = self.tags[index]
        self.edits.append((tag.start, tag.end, content))

    def indentation(self, place: int) -> str:
        """The line break and the white space before a place; nothing where it opens no line."""
        line = self.text[:place].rpartition(b"\n")[2]
        if line.strip() or not self.text[:place].count(b"\n"):
            return ""
        ends = "\r\n" if self.text[: place - len(line)].endswith(b"\r\n") else "\n"
        return ends + line.decode()

    def step(self, tag: XmlTag, own: str) -> str:
        """White space that an element's children have more than itself."""
        if not own:
            return ""
        inside = re.compile(rb"\n([ \t]*)<[^/!?]").search(self.text, tag.inner, tag.close)
        margin = own.strip("\r\n")
        if inside and inside[1].decode().startswith(margin) and len(inside[1]) > len(margin):
            return inside[1].decode()[len(margin) :]
        return "\t" if "\t" in margin else "  "

    def content(self, index: int) -> bytes:
        """What stands inside an element once everything is changed."""
        tag = self.tags[index]
        return self._changed(tag.inner, tag.close)

    def whole(self) -> bytes:
        """The whole file once everything is changed, in its own encoding."""
        return self._changed(0, len(self.text)).decode().encode(self.encoding, "xmlcharrefreplace")

    def _changed(self, start: int, end: int) -> bytes:
        parts, place = [], start
        for begin, stop, new in sorted(self.edits, key=lambda edit: edit[:2]):
            if start <= begin and stop <= end:
                parts += [self.text[place:begin], new]
                place = stop
        return b"".join([*parts, self.text[place:end]])


def _find_tags(text: bytes) -> list[XmlTag]:
    """Where the elements of a UTF-8 text stand, in the order of their start tags."""
    parser = expat.ParserCreate("utf-8")
    found: list[list[int]] = []
    open_: list[int] = []

    def start(name: str, _: object) -> None:
        place = parser.CurrentByteIndex
        if not text.startswith(b"<" + name.encode(), place):
            raise UnicodeError("an element stands in an entity")
        inner = _find_tag_end(text, place)
        open_.append(len(found))
        found.append([place, inner, inner, inner])

    def end(_: str) -> None:
        entry = found[open_.pop()]
        if not text.startswith(b"/>", entry[1] - 2):
            entry[2] = parser.CurrentByteIndex
            entry[3] = text.index(b">", entry[2]) + 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(text, True)
    return [XmlTag(*entry) for entry in found]


def _find_tag_end(text: bytes, place: int) -> int:
    """The place after the tag that starts there."""
    quote = b""
    for index in range(place, len(text)):
        each = text[index : index + 1]
        if quote:
            quote = b"" if each == quote else quote
        elif each in (b'"', b"'"):
            quote = each
        elif each == b">":
            return index + 1
    raise UnicodeError("a tag does not end")
