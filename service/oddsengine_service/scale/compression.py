"""Compression of what is stored in the logs and as snapshots: zstd, with a checksum of the content in every frame."""

import zstandard

_LEVEL = 3


class DamagedError(ValueError):
    """Stored data is not what was stored."""


def compressed(data: bytes) -> bytes:
    """Compress; `decompressed` notices if the result is damaged."""
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(data)


def decompressed(data: bytes, most: int) -> bytes:
    """The data that was compressed, of at most so many bytes. Raises `DamagedError` if it is damaged."""
    try:
        size = zstandard.frame_content_size(data)
        if size > most:  # before so much memory is taken
            raise DamagedError(f"damaged: {size:,} bytes, of at most {most:,}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=most, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DamagedError(f"damaged: {error}") from error
