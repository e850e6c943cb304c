"""What is at the address of the API itself: where its page, reference and descriptions are."""

from typing import Annotated

import msgspec
from msgspec import Meta

from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.request import BASE
from oddsengine_service.node import VERSION
from oddsengine_service.wire.envelopes import Data


class Index(msgspec.Struct):
    """Paths on this host."""

    version: str
    page: Annotated[str, Meta(description="The page for people.")]
    docs: Annotated[str, Meta(description="The API reference.")]
    openapi: str
    asyncapi: str
    health: str


def index(context: Context) -> dict[str, object]:
    at = context.root
    paths = (f"{at}{path}" for path in ("/", "/docs", "/openapi.json", "/asyncapi.json", f"{BASE}/health"))
    return data(context, Index(VERSION, *paths))


endpoints = (
    Endpoint(
        "/", index, "Where the page, the API reference and its descriptions are", "Health", Data[Index], key="none",
        cache="never", doc="Also without the slash at the end.",
    ),
)  # fmt: skip
