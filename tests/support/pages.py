"""Pages as tests look at them: well formed, inert, and what they show."""

import re
from html.parser import HTMLParser

# Elements of HTML without an end; those of SVG are written with one.
VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, and texts; ``faults``: elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.faults: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, name: str, value: str) -> int:
        """How many elements have the attribute ``name`` with that value."""
        return sum(attributes.get(name) == value for _, attributes in self.tags)


def check(text: str) -> Page:
    """The page has no script, no handler and no address but those inside itself, is well formed, and shows no NaN."""
    page = Page(text)
    assert not page.faults
    assert not page.open
    assert "script" not in {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert "url(" not in text
    assert "@import" not in text
    assert not re.search(r"\bnan\b", "".join(page.words), re.IGNORECASE)
    return page
