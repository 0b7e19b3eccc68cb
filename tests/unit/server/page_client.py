"""A client of the page for tests, and a check of what it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import requests

from tableformat.server.running import Server

VOID = {"meta", "link", "input", "img", "br", "hr"}


class Browser(requests.Session):
    """A client that keeps cookies and sends the headers of a browser on this site."""

    def __init__(self, server: Server, *, token: str | None = None) -> None:
        super().__init__()
        self.url = server.url
        self.headers["Sec-Fetch-Site"] = "same-origin"
        self._form_token = ""
        if token is not None:
            self.post(f"{self.url}/login", {"token": token, "next": "/"})

    def page(self, path: str) -> requests.Response:
        return self.get(self.url + path, timeout=30)

    def submit(self, path: str, form: Mapping[str, str], **options: Any) -> requests.Response:
        return self.post(self.url + path, {"form_token": self.form_token(), **form}, timeout=60, **options)

    def form_token(self) -> str:
        """The token for the forms of this session."""
        if not self._form_token:
            found = re.search(r'name="form_token" value="(\w+)"', self.page("/sql").text)
            assert found is not None
            self._form_token = found[1]
        return self._form_token


class Document(HTMLParser):
    """The elements and the text of a page. Fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{tag} is closed and not open"
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_harmless(text: str) -> Document:
    """Asserts that a page has no script, no handler, no style of its own, and no address elsewhere."""
    document = Document(text)
    for tag, attributes in document.elements:
        assert tag not in {"script", "style", "img", "iframe", "object", "embed", "base", "b"}, (tag, attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, attributes)
            assert name != "style", (tag, attributes)
            if name in ("href", "action", "src", "formaction"):
                assert value is not None
                assert value == "data:," or (value.startswith("/") and not value.startswith("//")), (tag, attributes)
    return document
