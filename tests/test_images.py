from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from fcdd import images
from fcdd.errors import DataError, ImageError, OutputError

RAMP16 = np.linspace(0, 65535, 4096).round().astype(np.uint16).reshape(64, 64)
RNG = np.random.default_rng(0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png(depth: int, colour: int, pixels: np.ndarray) -> bytes:
    """A PNG from big-endian samples (H, W[, C]), written by the specification and not by Pillow."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(bits: int, photometric: int, data: bytes, width: int, height: int, sample_format: int = 1) -> bytes:
    """A little-endian uncompressed gray TIFF with the given bits per sample."""
    entries = [(256, width), (257, height), (258, bits), (259, 1), (262, photometric), (273, 8 + 2 + 9 * 12 + 4)]
    entries += [(277, 1), (279, len(data)), (339, sample_format)]
    body = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + body + struct.pack("<I", 0) + data


def jpeg_header_claiming(width: int, height: int) -> bytes:
    """A tiny JPEG whose header is rewritten to claim other dimensions."""
    data = bytearray(encoded(Image.new("L", (8, 8)), "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        png(16, 0, RAMP16.astype(">u2")),
        encoded(Image.fromarray(RAMP16), "TIFF"),
        encoded(Image.fromarray(RAMP16), "TIFF", compression="tiff_lzw"),
        tiff(16, 1, RAMP16.astype("<u2").tobytes(), 64, 64),
        tiff(16, 0, (65535 - RAMP16).astype("<u2").tobytes(), 64, 64),
        encoded(Image.fromarray(RAMP16.astype(np.int32)), "TIFF"),
        b"P5\n64 64\n65535\n" + RAMP16.astype(">u2").tobytes(),
    ],
    ids=["png", "tiff", "tiff-lzw", "tiff-raw", "tiff-white-is-zero", "tiff-int32", "pgm"],
)
def test_sixteen_bit_gray_keeps_its_levels(data: bytes) -> None:
    expected = np.round(RAMP16 / 257).astype(np.uint8)
    pixels = images.load(data)
    assert pixels.shape == (64, 64, 3)
    assert pixels.dtype == np.uint8
    for channel in range(3):
        np.testing.assert_array_equal(pixels[:, :, channel], expected)
    assert len(np.unique(pixels)) == 256


def test_twelve_bit_camera_tiff_reaches_white() -> None:
    levels = np.array([0, 0x123, 0x800, 0xFFF])
    packed = bytes([0x00, 0x01, 0x23, 0x80, 0x0F, 0xFF])
    pixels = images.load(tiff(12, 1, packed, 4, 1))
    np.testing.assert_array_equal(pixels[0, :, 0], np.round(levels * 255 / 4095))


@pytest.mark.parametrize(
    "data", [tiff(16, 1, np.array([-5, 7], "<i2").tobytes(), 2, 1, 2), tiff(32, 1, b"\0" * 7 + b"\x10", 2, 1)]
)
def test_integers_outside_sixteen_bits_are_refused(data: bytes) -> None:
    with pytest.raises(ImageError, match=r"outside 0\.\.65535.*8 or 16 bits"):
        images.load(data)


def test_sixteen_bit_colour_keeps_its_high_byte() -> None:
    samples = RNG.integers(0, 65536, (5, 7, 3)).astype(">u2")
    np.testing.assert_array_equal(images.load(png(16, 2, samples)), samples >> 8)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "WEBP", "PPM"])
def test_rgb_is_read_exactly(kind: str) -> None:
    pixels = RNG.integers(0, 256, (9, 13, 3), dtype=np.uint8)
    options = {"lossless": True} if kind == "WEBP" else {}
    np.testing.assert_array_equal(images.load(encoded(Image.fromarray(pixels), kind, **options)), pixels)


def test_gray_and_one_bit_become_three_equal_channels() -> None:
    gray = RNG.integers(0, 256, (6, 5), dtype=np.uint8)
    np.testing.assert_array_equal(images.load(encoded(Image.fromarray(gray), "PNG")), np.stack([gray] * 3, 2))
    bits = gray > 99
    one_bit = images.load(encoded(Image.fromarray(bits), "PNG"))
    np.testing.assert_array_equal(one_bit, np.stack([bits * np.uint8(255)] * 3, 2))


@pytest.mark.parametrize("background", [(255, 255, 255), (0, 10, 200)])
def test_transparency_is_composited_on_the_background(background: tuple[int, int, int]) -> None:
    rgba = RNG.integers(0, 256, (11, 10, 4), dtype=np.uint8)
    alpha = rgba[:, :, 3:] / 255.0
    expected = rgba[:, :, :3] * alpha + np.array(background) * (1 - alpha)
    read = images.load(encoded(Image.fromarray(rgba), "PNG"), background=background)
    assert np.abs(read - expected).max() <= 0.5 + 1e-6
    la = rgba[:, :, [0, 3]]
    expected = la[:, :, :1] * alpha + np.array(background) * (1 - alpha)
    read = images.load(encoded(_la(la), "PNG"), background=background)
    assert np.abs(read - expected).max() <= 0.5 + 1e-6


def _la(samples: np.ndarray) -> Image.Image:
    return Image.merge("LA", [Image.fromarray(np.ascontiguousarray(samples[:, :, channel])) for channel in range(2)])


def test_palette_with_transparency() -> None:
    image = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8)).convert("P")
    image.putpalette([10, 20, 30, 200, 100, 50, 7, 8, 9])
    opaque = images.load(encoded(image, "PNG"))
    np.testing.assert_array_equal(opaque[0], [[10, 20, 30], [200, 100, 50], [7, 8, 9]])
    for transparency in (1, bytes([255, 0, 255])):
        read = images.load(encoded(image, "PNG", transparency=transparency), background=(1, 2, 3))
        np.testing.assert_array_equal(read[0], [[10, 20, 30], [1, 2, 3], [7, 8, 9]])


def test_cmyk_jpeg_with_adobe_polarity() -> None:
    inks = np.zeros((32, 48, 4), dtype=np.uint8)
    inks[:, :16, 1:3] = 255  # magenta and yellow: red
    inks[:, 16:32, 3] = 255  # black
    data = encoded(Image.frombytes("CMYK", (48, 32), inks.tobytes()), "JPEG", quality=100)
    assert b"Adobe" in data
    read = images.load(data).astype(int)
    for column, colour in ((8, (255, 0, 0)), (24, (0, 0, 0)), (40, (255, 255, 255))):
        assert np.abs(read[16, column] - colour).max() <= 3


@pytest.mark.parametrize(("white", "scale"), [(1.0, 255.0), (255.0, 1.0), (65535.0, 1 / 257)])
def test_float_tiff_is_scaled_by_its_range(white: float, scale: float) -> None:
    levels = np.linspace(0, white, 300, dtype=np.float32).reshape(20, 15)
    read = images.load(encoded(Image.fromarray(levels), "TIFF"))
    assert np.abs(read[:, :, 0] - levels * scale).max() <= 0.501


@pytest.mark.parametrize(
    ("bad", "reason"), [(np.nan, "NaN"), (np.inf, "infinite"), (-0.5, "outside"), (1e6, "outside")]
)
def test_float_tiff_without_a_meaning_is_refused(bad: float, reason: str) -> None:
    levels = np.full((4, 4), 0.5, dtype=np.float32)
    levels[2, 1] = bad
    with pytest.raises(ImageError, match=reason):
        images.load(encoded(Image.fromarray(levels), "TIFF"))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_turns_image_mask_and_size_alike(kind: str, orientation: int) -> None:
    pixels = np.zeros((16, 24, 3), dtype=np.uint8)
    pixels[:8, :16] = 255
    image = Image.fromarray(pixels)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(kind, {})
    data = encoded(image, kind, exif=exif, **options)
    oracle = image.copy()
    oracle.getexif()[0x0112] = orientation
    expected = np.asarray(ImageOps.exif_transpose(oracle))
    np.testing.assert_array_equal(images.load(data), expected)
    np.testing.assert_array_equal(images.load_mask(data), expected[:, :, 0] > 0)
    assert images.size(data) == expected.shape[:2]


def test_masks_of_every_mode_mean_nonzero() -> None:
    truth = RNG.random((12, 10)) > 0.7
    one = truth.astype(np.uint8)
    rgba = np.zeros((12, 10, 4), dtype=np.uint8)
    rgba[truth, 2] = 1
    rgba[:, :, 3] = RNG.integers(0, 2, (12, 10)) * 255
    palette = Image.fromarray(one * 3).convert("P")
    palette.putpalette([255, 255, 255] + [0, 0, 0] * 3)
    two_bands = _la(np.stack([one, 255 - one], 2))
    files = {
        "bool": encoded(Image.fromarray(truth), "PNG"),
        "one": encoded(Image.fromarray(one), "PNG"),
        "sixteen": encoded(Image.fromarray(one.astype(np.uint16)), "PNG"),
        "float": encoded(Image.fromarray(one.astype(np.float32) * 0.001), "TIFF"),
        "white is zero": tiff(16, 0, (65535 - one.astype("<u2")).tobytes(), 10, 12),
        "rgb": encoded(Image.fromarray(rgba[:, :, :3]), "PNG"),
        "rgba": encoded(Image.fromarray(rgba), "PNG"),
        "la": encoded(two_bands, "PNG"),
        "palette by index": encoded(palette, "PNG"),
    }
    for name, data in files.items():
        read = images.load_mask(data)
        assert read.dtype == np.bool_, name
        np.testing.assert_array_equal(read, truth, err_msg=name)


def test_a_lossy_mask_is_refused_and_a_flat_one_is_not() -> None:
    disc = np.zeros((40, 40), dtype=np.uint8)
    disc[10:23, 9:31] = 255
    with pytest.raises(ImageError, match="Save masks as PNG"):
        images.load_mask(encoded(Image.fromarray(disc), "JPEG", quality=60))
    assert not images.load_mask(encoded(Image.new("L", (16, 16)), "JPEG")).any()


def test_content_decides_not_the_suffix(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (5, 5, 3), dtype=np.uint8)
    path = tmp_path / "camera.jpg"
    path.write_bytes(encoded(Image.fromarray(pixels), "PNG"))
    np.testing.assert_array_equal(images.load(path), pixels)
    np.testing.assert_array_equal(images.load(str(path)), pixels)
    with path.open("rb") as stream:
        np.testing.assert_array_equal(images.load(stream), pixels)


def test_bad_files_name_themselves_the_reason_and_the_remedy(tmp_path: Path) -> None:
    whole = encoded(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), "PNG")
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    bad = {
        "empty.png": (b"", "zero bytes"),
        "text.png": (b"this is no image at all\n" * 9, "not an image"),
        "postscript.png": (eps, "not an image"),
        "header-only.png": (whole[:40], "damaged|not an image"),
    }
    for name, (data, reason) in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ImageError, match=reason) as caught:
            images.load(tmp_path / name)
        assert name in str(caught.value)
        assert caught.value.remedy
    with pytest.raises(ImageError, match="no such file"):
        images.load(tmp_path / "absent.png")
    with pytest.raises(ImageError, match="cannot be opened"):
        images.load(tmp_path)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM"])
def test_truncated_files_are_refused(kind: str) -> None:
    whole = encoded(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), kind)
    for fraction in (0.3, 0.6, 0.9):
        with pytest.raises(ImageError, match=r"damaged|not an image"):
            images.load(whole[: int(len(whole) * fraction)])


def test_flipped_bytes_never_escape_as_another_error_or_warning() -> None:
    rng = np.random.default_rng(1)
    pixels = Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF"):
            whole = encoded(pixels, kind, **({} if kind in ("BMP", "GIF") else {"exif": exif}))
            for _ in range(60):
                data = bytearray(whole)
                for at in rng.integers(0, min(len(data), 400), 4):
                    data[at] = rng.integers(256)
                try:
                    images.load(bytes(data), max_pixels=10**6)
                except ImageError:
                    continue


def test_animations_and_pages_are_refused_but_a_phone_picture_is_not() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    for kind in ("GIF", "TIFF", "WEBP", "PNG"):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
        with pytest.raises(ImageError, match=r"several frames or pages.*file of its own"):
            images.load(data)
    phone = encoded(frames[0], "MPO", save_all=True, append_images=frames[1:])
    assert images.load(phone)[0, 0].tolist() == images.load(encoded(frames[0], "JPEG"))[0, 0].tolist()


def test_the_pixel_limit_is_checked_before_decoding() -> None:
    with pytest.raises(ImageError, match=r"65000 × 65000|far too many"):
        images.load(jpeg_header_claiming(65000, 65000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImageError, match="12000 × 10000 pixels, more than the limit of 100,000,000"):
            images.size(jpeg_header_claiming(12000, 10000))
        with pytest.raises(ImageError, match="limit of 30"):
            images.load(encoded(Image.new("L", (8, 4)), "PNG"), max_pixels=30)
        assert images.size(jpeg_header_claiming(9500, 9900)) == (9900, 9500)


def test_threads_read_without_leaking_warning_filters() -> None:
    before = list(warnings.filters)
    data = jpeg_header_claiming(9500, 9900)
    threads = [threading.Thread(target=lambda: [images.size(data) for _ in range(40)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_save_png_round_trips_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (7, 6, 3), dtype=np.uint8)
    images.save_png(pixels[:, ::-1], tmp_path / "a.png")
    np.testing.assert_array_equal(images.load(tmp_path / "a.png"), pixels[:, ::-1])
    images.save_png(pixels[:, :, 0] > 100, tmp_path / "m.png")
    np.testing.assert_array_equal(images.load_mask(tmp_path / "m.png"), pixels[:, :, 0] > 100)
    with pytest.raises(TypeError, match="float64"):
        images.save_png(pixels / 255, tmp_path / "b.png")
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(OutputError, match="taken"):
        images.save_png(pixels, tmp_path / "taken.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "m.png", "taken.png"]


def test_resize_stretches_or_keeps_the_centre() -> None:
    pixels = np.zeros((40, 100, 3), dtype=np.uint8)
    pixels[:, 30:70] = 200  # exactly the central square
    np.testing.assert_array_equal(images.resize(pixels, 10, "crop")[:, 1:-1], 200)
    stretched = images.resize(pixels, 10)[0, :, 0].astype(int)
    assert np.abs(stretched - [0, 0, 0, 200, 200, 200, 200, 0, 0, 0]).max() <= 35
    assert images.resize(pixels[:, :, 0], 50, "crop").shape == (50, 50)


def test_resize_is_antialiased() -> None:
    stripes = np.tile(np.array([0, 255], dtype=np.uint8), (64, 32))
    assert np.abs(images.resize(stripes, 8)[:, 1:-1].astype(int) - 127).max() <= 2


def test_resize_mask_takes_the_pixel_under_the_centre() -> None:
    mask = RNG.random((9, 15)) > 0.5
    np.testing.assert_array_equal(images.resize_mask(mask, 3), mask[1::3, 2::5])
    np.testing.assert_array_equal(images.resize_mask(mask, 45), mask.repeat(5, 0).repeat(3, 1))


def test_luma_is_itu_601() -> None:
    pixels = RNG.integers(0, 256, (30, 30, 3), dtype=np.uint8)
    assert np.abs(images.luma(pixels) - pixels @ [0.299, 0.587, 0.114]).max() <= 0.51


def test_find_is_recursive_natural_and_ignores_the_hidden(tmp_path: Path) -> None:
    for name in ("2.png", "10.PNG", "1.txt", ".hidden.png", ".git/x.png", "b/3.jpeg", "b/12.tif", "a.bmp/x.webp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    found = [str(path.relative_to(tmp_path)) for path in images.find(tmp_path)]
    assert found == ["2.png", "10.PNG", "a.bmp/x.webp", "b/3.jpeg", "b/12.tif"]
    with pytest.raises(DataError, match="no such folder"):
        images.find(tmp_path / "absent")


def test_images_needs_no_torch() -> None:
    subprocess.run(
        [sys.executable, "-c", "import fcdd.images, sys; assert 'torch' not in sys.modules"], check=True, timeout=60
    )


def test_real_industrial_images(shared_data: Path) -> None:
    folder = shared_data / "fullsize" / "bottle"
    if not folder.is_dir():
        pytest.skip(f"{folder} not found")
    assert images.size(folder / "defect.png") == images.load(folder / "defect.png").shape[:2] == (900, 900)
    mask = images.load_mask(folder / "defect_mask.png")
    assert mask.shape == (900, 900)
    assert 0.001 < mask.mean() < 0.2


def test_pipes_and_devices_are_refused_and_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for path in images.find(tmp_path):
        for read in (images.load, images.load_mask, images.size):
            with pytest.raises(ImageError, match="a pipe or a device, not a file"):
                read(path)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1, 3), (6, 2, 4)], ids=str)
def test_a_png_that_is_written_fast_holds_the_same_pixels(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    images.save_png(array, tmp_path / "fast.png", fast=True)
    with Image.open(tmp_path / "fast.png") as found:
        found.load()
        assert np.array_equal(np.asarray(found), array)
