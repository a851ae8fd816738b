"""The application: models by name, their answers over HTTP, and the page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import fcdd
from fcdd.detector.runtime import Runtime
from fcdd.serve import answers, pages, uploads
from fcdd.serve.answers import HeatmapKind, Judged, ModelDetail, ModelList, Prediction, Predictions, Problem
from fcdd.serve.batching import Batcher
from fcdd.serve.guard import NEEDS_TOKEN, PROBLEM, Guard, problem
from fcdd.serve.limits import Admission, Entry, Limits, Refusal
from fcdd.serve.metrics import CONTENT_TYPE, Metrics
from fcdd.serve.uploads import MULTIPART, RAW, Upload

T = TypeVar("T")
router = APIRouter(prefix="/v1")
service_router = APIRouter()


class Service:
    """The models with their batchers, and what they share."""

    def __init__(self, models: Mapping[str, Runtime], limits: Limits, workers: int) -> None:
        self.models, self.limits = dict(models), limits
        self.admission = Admission(limits)
        self.metrics = Metrics(self.admission)
        self.batchers = {
            name: Batcher(model.predict_arrays, limits.batch, workers, self.metrics.batches.labels(name).observe)
            for name, model in self.models.items()
        }
        self.ready = False
        self._pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="pictures")

    async def judge(self, model: str, upload: Upload, entry: Entry, kind: HeatmapKind) -> Prediction:
        """Decode, compute, draw; Refusal where the picture cannot be used."""
        entry.add(pixels=await self._aside(partial(uploads.measure, upload.content, self.limits)))
        array: NDArray[np.uint8] = await self._aside(partial(uploads.decode, upload.content, self.limits))
        result = await self.batchers[model].predict(array)
        self.metrics.pictures.labels(model, str(result.verdict)).inc()
        draw = partial(answers.prediction, model, self.models[model], upload.name, result, kind)
        return await self._aside(draw) if kind is not HeatmapKind.NONE else draw()

    async def close(self) -> None:
        self.ready = False
        for batcher in self.batchers.values():
            await batcher.close()
        self._pool.shutdown()

    async def _aside(self, work: Callable[[], T]) -> T:
        """Decoding and encoding in threads, so that the loop goes on answering."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def create(models: Mapping[str, Runtime], limits: Limits, token: str | None = None, workers: int = 1) -> FastAPI:
    """The application for these models; `workers` batches of a model are computed at a time."""
    service = Service(models, limits, workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.ready = True
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
    return problem(Refusal(400, "the client left before its body was complete"))


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
    form = {"type": "object", "properties": {uploads.FIELD: field}, "required": [uploads.FIELD]}
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
    """The verdict on one picture: a form with a file named `image`, or the encoded picture as the body."""
    service = _service(request, name)
    with service.admission.entered() as entry:
        upload = (await uploads.receive(request, service.limits, most=1))[0]
        found = await _in_time(service.limits, service.judge(name, upload, entry, heatmap))
    request.state.told.update(model=name, verdict=found.verdict, score=round(found.score, 6))
    return found


@router.post("/models/{name}/predict/batch", tags=["predict"], responses=REFUSALS, openapi_extra=_body(many=True))
async def predict_batch(request: Request, name: str, heatmap: HeatmapKind = HeatmapKind.NONE) -> Predictions:
    """The verdicts on the files named `image` of a form; a picture that cannot be used does not spoil the others."""
    service = _service(request, name)

    async def one(upload: Upload, entry: Entry) -> Judged:
        try:
            return Judged(prediction=await service.judge(name, upload, entry, heatmap))
        except Refusal as refused:
            if refused.status == 503:
                raise
            return Judged(problem=Problem.model_validate_json(bytes(problem(refused).body)))

    with service.admission.entered() as entry:
        pictures = await uploads.receive(request, service.limits, service.limits.pictures)
        entry.add(pictures=len(pictures) - 1)
        judged = await _in_time(service.limits, _all([one(upload, entry) for upload in pictures]))
    request.state.told.update(model=name, pictures=len(judged))
    return Predictions(results=judged)


async def _all(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; where one fails, the others are ended first."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _in_time(limits: Limits, work: Coroutine[Any, Any, T]) -> T:
    try:
        async with asyncio.timeout(limits.seconds):
            return await work
    except TimeoutError:
        raise Refusal(504, f"no answer within {limits.seconds:g} s") from None


@service_router.get("/healthz", tags=["service"], response_class=PlainTextResponse)
async def healthz() -> str:
    """The process answers."""
    return "ok"


@service_router.get("/readyz", tags=["service"], response_class=PlainTextResponse, responses=_problems(503))
async def readyz(request: Request) -> str:
    """The models are loaded and there is room in the queue."""
    service = _service(request)
    if not service.ready or service.admission.pictures >= service.limits.queue:
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
