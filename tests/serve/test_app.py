"""The API as programs use it, against what the runtime says itself."""

from __future__ import annotations

import base64
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import requests
from PIL import Image

from fcdd import images
from fcdd.detector.runtime import Runtime
from fcdd.report.colours import tinted
from fcdd.report.inspection import heat
from fcdd.serve.limits import Limits

from .running import HalfRequest, encoded, running

PREDICT = "/v1/models/plate/predict"


def post(address: str, data: bytes, **options: str) -> requests.Response:
    return requests.post(address, data=data, headers={"Content-Type": "image/png"}, params=options, timeout=20)


def test_form_and_raw_body_get_the_runtimes_result(served: str, plate: Runtime, defect: Path) -> None:
    expected = plate.predict(defect)
    raw = post(served + PREDICT, defect.read_bytes()).json()
    form = requests.post(served + PREDICT, files={"image": defect.open("rb")}, timeout=20).json()
    assert form | {"name": None} == raw
    assert form["name"] == defect.name
    assert raw["score"] == pytest.approx(expected.score, rel=1e-6)
    assert (raw["verdict"], raw["p_value"]) == (str(expected.verdict), expected.p_value)
    assert (raw["width"], raw["height"], raw["model"], raw["heatmap"]) == (128, 128, "plate", None)
    assert len(raw["regions"]) == len(expected.regions) > 0
    assert raw["regions"][0] == pytest.approx(asdict(expected.regions[0]), rel=1e-4)


def test_the_png_over_the_image_is_the_overlay(served: str, plate: Runtime, defect: Path) -> None:
    array, result = next(plate.inspect([defect]))
    found = post(served + PREDICT, defect.read_bytes(), heatmap="png").json()["heatmap"]
    heatmap = Image.open(io.BytesIO(base64.b64decode(found["png"])))
    assert heatmap.size == (found["width"], found["height"]) == (128, 128)
    # Whatever composites the PNG sees what `fcdd predict` writes, but for the rounding of colour and opacity to bytes.
    mixed = Image.alpha_composite(Image.fromarray(array).convert("RGBA"), heatmap.convert("RGBA"))
    expected = tinted(array, heat(plate, result)).astype(int)
    assert np.abs(np.asarray(mixed)[..., :3].astype(int) - expected).max() <= 3


def test_the_json_heatmap_holds_the_cells_that_make_the_score(served: str, plate: Runtime, defect: Path) -> None:
    answer = post(served + PREDICT, defect.read_bytes(), heatmap="json").json()
    cells = np.array(answer["heatmap"]["values"], np.float32)
    assert cells.shape == (answer["heatmap"]["height"], answer["heatmap"]["width"]) == plate.grid.cells
    assert plate.score(cells) == pytest.approx(answer["score"], rel=1e-5)


def test_a_large_image_gets_a_small_heatmap_of_its_aspect(plate_model: Path) -> None:
    plate = Runtime(plate_model, threads=1)
    plate.framing = "stretch"
    with running({"plate": plate}) as address:
        answer = post(address + PREDICT, encoded(np.full((900, 2400, 3), 90, np.uint8)), heatmap="png").json()
    assert (answer["width"], answer["height"]) == (2400, 900)
    assert (answer["heatmap"]["width"], answer["heatmap"]["height"]) == (1024, 384)


def test_an_image_of_another_aspect_is_refused_or_fitted_as_told(served: str, plate_model: Path, defect: Path) -> None:
    part = images.load(defect)
    wide = encoded(np.pad(part, ((0, 0), (50, 50), (0, 0)), "edge"))
    refused = post(served + PREDICT, wide)
    assert refused.status_code == 422
    assert "--fit" in refused.json()["detail"]
    plate = Runtime(plate_model, threads=1)
    alone = plate.predict(defect)
    plate.framing = "crop"
    with running({"plate": plate}) as address:
        found = post(address + PREDICT, wide).json()
    assert (found["width"], found["height"]) == (228, 128)
    assert found["score"] == pytest.approx(alone.score, rel=1e-4)
    assert [region["x"] - 50 for region in found["regions"]] == [region.x for region in alone.regions]


def test_batch_answers_in_order_and_names_what_it_cannot_use(served: str, plate: Runtime, plate_folder: Path) -> None:
    paths = images.find(plate_folder / "test")[:5]
    files = [("image", (path.name, path.read_bytes())) for path in paths]
    files.insert(2, ("image", ("notes.txt", b"no image")))
    found = requests.post(served + PREDICT + "/batch", files=files, timeout=20).json()["results"]
    assert found[2]["prediction"] is None
    assert found[2]["problem"]["status"] == 415
    judged = [one["prediction"] for one in found if one["prediction"]]
    assert [one["name"] for one in judged] == [path.name for path in paths]
    assert [one["score"] for one in judged] == pytest.approx([plate.predict(p).score for p in paths], rel=1e-4)


def test_images_of_many_clients_share_batches(plate: Runtime, plate_folder: Path) -> None:
    paths = images.find(plate_folder / "test")[:8] * 3
    with running({"plate": plate}) as address, ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(lambda path: post(address + PREDICT, path.read_bytes()).json(), paths))
        told = metrics(address)
    assert [a["score"] for a in answers] == pytest.approx([plate.predict(p).score for p in paths], rel=1e-4)
    assert told['fcdd_batch_images_sum{model="plate"}'] == 24
    assert told['fcdd_batch_images_count{model="plate"}'] < 24
    assert told["fcdd_queue_images"] == 0


def metrics(address: str) -> dict[str, float]:
    lines = requests.get(address + "/metrics", timeout=20).text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_models_tell_their_calibration(served: str, plate: Runtime) -> None:
    listed = requests.get(served + "/v1/models", timeout=20).json()["models"]
    assert [model["name"] for model in listed] == ["plate", "other"]
    detail = requests.get(served + "/v1/models/plate", timeout=20).json()
    calibration = plate.calibration
    assert detail["calibration_scores"] == list(calibration.scores)
    assert detail["reject_above"] == calibration.threshold(calibration.reject)
    assert detail["guarantee"]["sentence"] == str(calibration.guarantee(calibration.reject))
    assert "trained" not in detail["card"]
    missing = requests.get(served + "/v1/models/..%2f..%2fetc%2fpasswd", timeout=20)
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "application/problem+json"


def test_probes_answer_and_metrics_count(served: str) -> None:
    for path in ("/healthz", "/readyz"):
        assert requests.get(served + path, timeout=20).text == "ok"
    before = metrics(served).get('fcdd_requests_total{method="GET",route="other",status="404"}', 0)
    requests.get(served + "/made/up/by/a/client", timeout=20)
    told = metrics(served)
    assert told['fcdd_requests_total{method="GET",route="other",status="404"}'] == before + 1
    assert told["process_resident_memory_bytes"] > 1e6


@pytest.mark.parametrize(
    ("limits", "body", "status"),
    [
        (Limits(body=1000), bytes(1001), 413),
        (Limits(pixels=99), encoded(np.zeros((10, 10, 3), np.uint8)), 413),
        (Limits(side=50), encoded(np.zeros((1, 51, 3), np.uint8)), 413),
        (Limits(), b"plain text", 415),
        (Limits(), encoded(np.zeros((64, 64, 3), np.uint8))[:-30], 422),
        (Limits(), b"", 422),
        (Limits(seconds=0.001), encoded(np.zeros((400, 400, 3), np.uint8)), 504),
    ],
    ids=["bytes", "pixels", "side", "no image", "damaged", "empty", "time"],
)
def test_limits(plate: Runtime, limits: Limits, body: bytes, status: int) -> None:
    with running({"plate": plate}, limits) as address:
        answer = post(address + PREDICT, body)
        assert answer.status_code == status
        assert answer.json()["status"] == status
        assert answer.json()["detail"]
        # A body without a length is bounded while it comes in.
        assert requests.post(address + PREDICT, data=iter([body]), timeout=20).status_code == status
        assert metrics(address)["fcdd_queue_images"] == 0


def test_other_content_and_forms_without_the_file_are_refused(served: str) -> None:
    other = requests.post(served + PREDICT, data="{}", headers={"Content-Type": "application/json"}, timeout=20)
    assert other.status_code == 415
    unnamed = requests.post(served + PREDICT, files={"photo": b"x"}, timeout=20)
    assert unnamed.status_code == 422
    many = requests.post(served + PREDICT, files=[("image", b"x")] * 2, timeout=20)
    assert many.status_code == 422
    broken = requests.post(served + PREDICT, data=b"x", headers={"Content-Type": "multipart/form-data"}, timeout=20)
    assert broken.status_code == 422
    assert post(served + PREDICT, b"x", heatmap="gif").status_code == 422


def test_a_full_queue_refuses_before_reading_and_recovers(plate: Runtime, defect: Path) -> None:
    image = defect.read_bytes()
    with running({"plate": plate}, Limits(queue=1, images=1)) as address:
        first = HalfRequest(address, PREDICT, image)
        deadline = time.monotonic() + 20
        while metrics(address)["fcdd_queue_images"] < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        refused = post(address + PREDICT, image)
        assert refused.status_code == 503
        assert 1 <= int(refused.headers["Retry-After"]) <= 30
        assert requests.get(address + "/readyz", timeout=20).status_code == 503
        assert requests.get(address + "/healthz", timeout=20).status_code == 200
        assert json.loads(first.finish().partition(b"\r\n\r\n")[2])["model"] == "plate"
        first.close()
        assert post(address + PREDICT, image).status_code == 200


def test_a_stalled_upload_gives_its_place_back(plate: Runtime, defect: Path) -> None:
    with running({"plate": plate}, Limits(upload_seconds=0.2)) as address:
        stalled = HalfRequest(address, PREDICT, defect.read_bytes())
        answer = stalled.answer()
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"connection: close" in answer
        left = HalfRequest(address, PREDICT, defect.read_bytes())
        left.close()
        deadline = time.monotonic() + 20
        while metrics(address)["fcdd_queue_images"] and time.monotonic() < deadline:
            time.sleep(0.01)
        told = metrics(address)
        assert told["fcdd_queue_images"] == 0
        statuses = {key.partition("status=")[2][1:4] for key in told if "requests_total" in key and "predict" in key}
        assert statuses == {"408", "400"}


def test_images_never_touch_the_disk(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A form part beyond a megabyte would be spooled to a file; without a place for it that fails.
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    noise = np.random.default_rng(0).integers(0, 256, (700, 700, 3), np.uint8)
    answer = requests.post(served + PREDICT, files={"image": encoded(noise)}, timeout=20)
    assert answer.status_code == 200


def test_the_schema_is_whole_and_the_pages_load_nothing_from_elsewhere(served: str) -> None:
    schema = requests.get(served + "/openapi.json", timeout=20).json()
    predict = schema["paths"]["/v1/models/{name}/predict"]["post"]
    assert {"200", "413", "415", "422", "503", "504"} <= set(predict["responses"])
    assert set(predict["requestBody"]["content"]) >= {"multipart/form-data", "image/png", "image/jpeg"}
    for path in ("/", "/docs"):
        page = requests.get(served + path, timeout=20)
        assert page.headers["content-type"].startswith("text/html")
        assert "://" not in page.text
        assert "style=" not in page.text
        assert "<script>" not in page.text
