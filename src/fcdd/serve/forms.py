"""The files of a multipart form. Runs in a decoder's process, where a form made to be slow costs nobody else."""

from __future__ import annotations

import json

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from fcdd.serve.limits import Refusal

FIELD = "image"  # of a form
NAME_LENGTH = 200
PART_HEADER = 4096  # bytes of the header of one part of a form


class Form:
    """Collects the files named `image` of a form as the parser finds them; at most `most` parts are taken."""

    def __init__(self, most: int) -> None:
        self.files: list[tuple[str, bytearray]] = []
        self._most, self._parts = most, 0
        self._name, self._value, self._disposition = b"", b"", b""
        self._file: bytearray | None = None

    def begin(self) -> None:
        self._parts += 1
        if self._parts > self._most:
            raise Refusal(422, f"too many parts in the form; at most {self._most} fit one request")
        self._name, self._value, self._disposition, self._file = b"", b"", b"", None

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._name = self._longer(self._name, data[start:end])

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value = self._longer(self._value, data[start:end])

    def _longer(self, held: bytes, more: bytes) -> bytes:
        if len(held) + len(more) > PART_HEADER:
            raise Refusal(422, f"the header of a part of the form is longer than {PART_HEADER} bytes")
        return held + more

    def header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") == FIELD.encode() and b"filename" in options:
            # Forms are UTF-8 (RFC 7578), whatever character set the client names.
            self._file = bytearray()
            self.files.append((options[b"filename"].decode("utf-8", "replace")[:NAME_LENGTH], self._file))

    def data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file += memoryview(data)[start:end]


def files_of(content_type: str, body: bytes, most: int) -> bytes:
    """The names and sizes of the files of a multipart body as one line of JSON, then their bytes; Refusal 422."""
    found = Form(most)
    try:
        boundary = parse_options_header(content_type)[1][b"boundary"]
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": found.begin,
                "on_header_field": found.header_name,
                "on_header_value": found.header_value,
                "on_header_end": found.header_end,
                "on_headers_finished": found.headers_end,
                "on_part_data": found.data,
            },
        )
        parser.write(body)
        parser.finalize()
    except KeyError:
        raise Refusal(422, "the form cannot be read: its content type names no boundary") from None
    except (FormParserError, ValueError) as error:
        raise Refusal(422, f"the form cannot be read: {error}") from None
    if not found.files:
        raise Refusal(422, f"the form has no file in a field named {FIELD!r}")
    listed = json.dumps([(name, len(content)) for name, content in found.files]).encode()
    return b"\n".join([listed, b"".join(content for _, content in found.files)])
