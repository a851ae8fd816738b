"""The application: models by name, their answers over HTTP, and the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import fcdd
from fcdd.detector.looks import TRAITS
from fcdd.detector.result import Result
from fcdd.detector.runtime import Runtime
from fcdd.serve import answers, pages, uploads
from fcdd.serve.answers import HeatmapKind, Judged, ModelDetail, ModelList, Prediction, Predictions, Problem
from fcdd.serve.batching import Batcher
from fcdd.serve.decoders import Decoders, Upload
from fcdd.serve.forms import FIELD
from fcdd.serve.guard import NEEDS_TOKEN, PROBLEM, Guard, problem
from fcdd.serve.limits import MEGA, Admission, Entry, Limits, Refusal
from fcdd.serve.metrics import CONTENT_TYPE, Metrics
from fcdd.serve.recent import Recent
from fcdd.serve.uploads import MULTIPART, RAW, Body

T = TypeVar("T")
LARGE = 4 * MEGA  # pixels beyond which one heatmap at a time is drawn: it takes hundreds of megabytes
router = APIRouter(prefix="/v1")
service_router = APIRouter()


class Service:
    """The models with their batchers, and what they share."""

    def __init__(self, models: Mapping[str, Runtime], limits: Limits, workers: int) -> None:
        self.models, self.limits = dict(models), limits
        self.admission = Admission(limits)
        self.decoders = Decoders(limits, max(workers, 2))  # one that is busy must not keep the others waiting
        self.metrics = Metrics(self.admission, self.decoders)
        self.batchers = {
            name: Batcher(model.predict_arrays, limits.batch, workers, self.metrics.batches.labels(name).observe)
            for name, model in self.models.items()
        }
        self.recent = {name: Recent(model) for name, model in self.models.items()}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="answers")
        self._large = asyncio.Semaphore(1)

    @property
    def ready(self) -> bool:
        """Whether an image sent now would be judged."""
        return self.decoders.working and self.admission.images < self.limits.queue

    async def judge(self, model: str, upload: Upload, kind: HeatmapKind) -> Prediction:
        """Decode, compute, draw; Refusal where the image cannot be used."""
        runtime = self.models[model]
        image = await self.decoders.image(upload.content, runtime.grid.shape, runtime.frame)
        # The decoder has resized it as the runtime would, so that no image of full size is ever in this process.
        result = await self.batchers[model].predict(image.pixels)
        self._remember(model, result)
        draw = partial(answers.prediction, model, runtime, upload.name, answers.Seen(result.cells, image.size), kind)
        height, width = image.size
        async with self._large if height * width > LARGE else nullcontext():
            found = await asyncio.get_running_loop().run_in_executor(self._pool, draw)
        self.metrics.images.labels(model, str(found.verdict)).inc()
        return found.model_copy(update={"warning": self.recent[model].warning})

    def _remember(self, model: str, result: Result) -> None:
        """Compare what was sent of late with the calibration images."""
        recent = self.recent[model]
        if result.looks is not None and recent.add(result.looks):
            changed = {change.trait for change in recent.changes}
            for trait in TRAITS:
                self.metrics.looks.labels(model, trait.name).set(trait.name in changed)

    async def close(self) -> None:
        for batcher in self.batchers.values():
            await batcher.close()
        await self.decoders.close()
        self._pool.shutdown()


def create(models: Mapping[str, Runtime], limits: Limits, token: str | None = None, workers: int = 1) -> FastAPI:
    """The application for these models; `workers` batches of a model are computed at a time."""
    service = Service(models, limits, workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.decoders.start()
        yield
        await service.close()

    # The usual documentation pages load their scripts from other hosts; `pages` has one of its own.
    app = FastAPI(
        title="fcdd",
        version=fcdd.__version__,
        summary="Anomaly detection whose score is its explanation",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(service_router)
    app.include_router(pages.router)
    app.add_middleware(Guard, token=token, metrics=service.metrics)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(ClientDisconnect, _refused)
    if token is not None:
        _describe_token(app)
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """Every refusal is a problem document, whoever found it."""
    if isinstance(error, Refusal):
        return problem(error)
    if isinstance(error, HTTPException):
        return problem(Refusal(error.status_code, str(error.detail), error.headers))
    if isinstance(error, RequestValidationError):
        listed = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        return problem(Refusal(422, listed))
    return problem(Refusal(400, "the client left before it was answered"))


def _service(request: Request, name: str | None = None) -> Service:
    service: Service = request.app.state.service
    if name is not None and name not in service.models:
        raise Refusal(404, f"no such model; there are {', '.join(service.models)}")
    return service


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How refusals look in the schema."""
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    described = {503: {"headers": {"Retry-After": {"schema": {"type": "integer"}}}}}
    return {s: {"content": content, **described.get(s, {})} for s in statuses}


def _body(many: bool) -> dict[str, Any]:
    """The body of a prediction in the schema: handlers read it themselves, to bound it while it comes in."""
    file = {"type": "string", "format": "binary"}
    field = {"type": "array", "items": file, "minItems": 1} if many else file
    form = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    content: dict[str, Any] = {MULTIPART: {"schema": form}}
    if not many:
        content |= {kind: {"schema": file} for kind in ("image/png", "image/jpeg", RAW)}
    return {"requestBody": {"required": True, "content": content}}


@router.get("/models", tags=["models"])
async def list_models(request: Request) -> ModelList:
    """The models that are served."""
    models = _service(request).models
    return ModelList(models=[answers.summary(name, runtime) for name, runtime in models.items()])


@router.get("/models/{name}", tags=["models"], responses=_problems(404, 422))
async def show_model(request: Request, name: str) -> ModelDetail:
    """One model: its thresholds, its promise, and the scores of good parts they come from."""
    return answers.detail(name, _service(request, name).models[name])


REFUSALS = _problems(400, 404, 408, 413, 415, 422, 503, 504)


@router.post("/models/{name}/predict", tags=["predict"], responses=REFUSALS, openapi_extra=_body(many=False))
async def predict(request: Request, name: str, heatmap: HeatmapKind = HeatmapKind.NONE) -> Prediction:
    """The verdict on one image: a form with a file named `image`, or the encoded image as the body."""
    service = _service(request, name)

    async def answer(body: Body) -> Prediction:
        (upload,) = await body.uploads(service.decoders, most=1)
        return await service.judge(name, upload, heatmap)

    with service.admission.entered() as entry:
        body = await uploads.receive(request, service.limits, entry)
        found = await _in_time(request, service.limits, answer(body))
    request.state.told.update(model=name, verdict=found.verdict, score=round(found.score, 6))
    return found


@router.post("/models/{name}/predict/batch", tags=["predict"], responses=REFUSALS, openapi_extra=_body(many=True))
async def predict_batch(request: Request, name: str, heatmap: HeatmapKind = HeatmapKind.NONE) -> Predictions:
    """The verdicts on the files named `image` of a form; an image that cannot be used does not spoil the others."""
    service = _service(request, name)

    async def one(upload: Upload) -> Judged:
        try:
            return Judged(prediction=await service.judge(name, upload, heatmap))
        except Refusal as refused:
            return Judged(problem=Problem.model_validate_json(bytes(problem(refused).body)))

    async def answer(body: Body, entry: Entry) -> list[Judged]:
        found = await body.uploads(service.decoders, service.limits.images)
        entry.add(images=len(found) - 1)
        return await _all([one(upload) for upload in found])

    with service.admission.entered() as entry:
        body = await uploads.receive(request, service.limits, entry)
        judged = await _in_time(request, service.limits, answer(body, entry))
    request.state.told.update(model=name, images=len(judged))
    return Predictions(results=judged)


async def _all(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; where one fails, the others are ended first."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _in_time(request: Request, limits: Limits, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is ended where its time is over or its client has left."""
    doing, leaving = asyncio.create_task(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({doing, leaving}, timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        if leaving.done():
            raise ClientDisconnect
        raise Refusal(504, f"no answer within {limits.seconds:g} s")
    finally:
        doing.cancel()
        leaving.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    """Return when the client closes its connection; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@service_router.get("/healthz", tags=["service"], response_class=PlainTextResponse)
async def healthz() -> str:
    """The process answers."""
    return "ok"


@service_router.get("/readyz", tags=["service"], response_class=PlainTextResponse, responses=_problems(503))
async def readyz(request: Request) -> str:
    """The models are loaded, images can be decoded, and there is room in the queue."""
    service = _service(request)
    if not service.ready:
        raise Refusal(503, "not ready", {"Retry-After": str(service.admission.retry_after())})
    return "ok"


@service_router.get("/metrics", tags=["service"], response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters in Prometheus form."""
    return Response(_service(request).metrics.text(), media_type=CONTENT_TYPE)


def _describe_token(app: FastAPI) -> None:
    """Say in the schema that /v1 and /metrics need the token."""
    schema = app.openapi()
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path.startswith(NEEDS_TOKEN):
                operation["security"] = [{"token": []}]
                operation["responses"]["401"] = {"description": "Unauthorized"}
