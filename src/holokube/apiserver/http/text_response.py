"""Streams text to one client as it comes: a log that is followed."""

from __future__ import annotations

from aiohttp import HttpVersion11, web

from holokube.apiserver.subresources.logs import TextStream


async def send_text(raw: web.BaseRequest, stream: TextStream) -> web.StreamResponse:
    """Send pieces until they end or the client goes away."""
    response = web.StreamResponse(
        headers={"Content-Type": stream.content_type, "Cache-Control": "no-cache, private"}
    )
    if raw.version >= HttpVersion11:
        response.enable_chunked_encoding()
    else:
        response.force_close()
    try:
        await response.prepare(raw)
        async for piece in stream.pieces:
            await response.write(piece)
        await response.write_eof()
    except ConnectionError:
        # The client has seen enough, which is how following a log ends.
        return response
    return response
