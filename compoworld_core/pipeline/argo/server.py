"""An Argo server, asked through Hera's service: what it refuses and what it cannot do now are told apart.

Where it is and who asks comes from the variables that Argo's own command line reads: ARGO_SERVER, ARGO_TOKEN,
ARGO_NAMESPACE. The token is never an argument, for those can be read by everybody on the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import requests
from hera.exceptions import AlreadyExists, HeraException, InternalServerError, NotFound
from hera.exceptions import NotImplemented as Unsupported
from hera.workflows import CronWorkflow, Workflow, WorkflowsService, WorkflowTemplate
from hera.workflows.models import (
    CreateCronWorkflowRequest,
    UpdateCronWorkflowRequest,
    WorkflowCreateRequest,
    WorkflowStopRequest,
    WorkflowTemplateCreateRequest,
    WorkflowTemplateUpdateRequest,
    WorkflowTerminateRequest,
)

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError, InputError, TransientError

_PATIENCE_S: Final = 60


class Access(Data):
    """Where an Argo server is, and for whom.

    Attributes:
        token_file: Holds the token, if the variable ARGO_TOKEN does not.
        ca: Certificates that the server's is signed with, if they are not the system's.
    """

    url: str
    namespace: str
    token_file: Path | None = None
    ca: Path | None = None

    @classmethod
    def found(
        cls,
        server: str | None,
        namespace: str | None,
        token_file: Path | None,
        ca: Path | None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """What was said outright, or else in the environment.

        Raises:
            InputError: Nothing says where the server is.
        """
        given = os.environ if environment is None else environment
        url = server or given.get("ARGO_SERVER", "")
        if not url:
            raise InputError("say where the Argo server is: --server, or the variable ARGO_SERVER")
        if "://" not in url:
            url = f"https://{url}"
        if ca is not None and not ca.is_file():
            raise InputError(f"--ca {ca}: there is no such file")
        return cls(
            url=url.rstrip("/") + "/",
            namespace=namespace or given.get("ARGO_NAMESPACE") or "default",
            token_file=token_file,
            ca=ca,
        )

    def token(self) -> str | None:
        """The token; None for a server that needs none.

        Raises:
            InputError: Its file cannot be read.
        """
        if self.token_file is None:
            return os.environ.get("ARGO_TOKEN") or None
        try:
            return self.token_file.read_text(encoding="utf-8").strip() or None
        except OSError as error:
            raise InputError(f"--token-file {self.token_file}: cannot be read: {error.strerror}") from error


class _Session(requests.Session):
    """A session that does not wait for ever, and follows nobody elsewhere with a token."""

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        kwargs["timeout"] = kwargs.get("timeout") or _PATIENCE_S
        kwargs["allow_redirects"] = False
        answer = super().send(request, **kwargs)
        if 300 <= answer.status_code < 400:
            raise InputError(f"the Argo server sends elsewhere ({answer.status_code}): give --server its own address")
        return answer


class ArgoServer:
    """A server and a namespace of it."""

    def __init__(self, access: Access) -> None:
        self._access = access
        session = _Session()
        session.trust_env = False  # a netrc entry would replace the token
        self._service = WorkflowsService(
            host=access.url,
            verify_ssl=str(access.ca) if access.ca else True,  # type: ignore[arg-type]  # handed on to requests
            token=access.token(),
            namespace=access.namespace,
            session=session,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._service.session.close()

    def submit(self, workflow: Workflow) -> str:
        """Create a workflow, or create or replace a template or a schedule; its name."""
        built = workflow.build()
        built.metadata.namespace = self._access.namespace
        with self._explained():
            if isinstance(workflow, WorkflowTemplate):
                return self._install_template(built)
            if isinstance(workflow, CronWorkflow):
                return self._install_schedule(built)
            return _name(self._service.create_workflow(WorkflowCreateRequest(workflow=built)))

    def _install_template(self, built: Any) -> str:
        service = self._service
        try:
            return _name(service.create_workflow_template(WorkflowTemplateCreateRequest(template=built)))
        except AlreadyExists:
            known = service.get_workflow_template(built.metadata.name)
            built.metadata.resource_version = known.metadata.resource_version
            request = WorkflowTemplateUpdateRequest(name=built.metadata.name, template=built)
            return _name(service.update_workflow_template(built.metadata.name, request))

    def _install_schedule(self, built: Any) -> str:
        service = self._service
        try:
            return _name(service.create_cron_workflow(CreateCronWorkflowRequest(cron_workflow=built)))
        except AlreadyExists:
            known = service.get_cron_workflow(built.metadata.name)
            built.metadata.resource_version = known.metadata.resource_version
            request = UpdateCronWorkflowRequest(name=built.metadata.name, cron_workflow=built)
            return _name(service.update_cron_workflow(built.metadata.name, request))

    def workflows(self, label: str) -> list[dict[str, Any]]:
        """The workflows with a label, latest first, without their nodes."""
        fields = "items.metadata.name,items.metadata.creationTimestamp,items.status.phase,items.status.progress"
        with self._explained():
            answer = self._get(f"workflows/{self._access.namespace}", listOptions_labelSelector=label, fields=fields)
        items: list[dict[str, Any]] = answer.json().get("items") or []
        return sorted(items, key=lambda item: str(item["metadata"].get("creationTimestamp")), reverse=True)

    def workflow(self, name: str) -> dict[str, Any]:
        """A workflow as the server has it."""
        with self._explained():
            found: dict[str, Any] = self._get(f"workflows/{self._access.namespace}/{quote(name, safe='')}").json()
        return found

    def logs(self, name: str, *, follow: bool) -> Iterator[tuple[str, str]]:
        """Lines of a workflow's pods as they come, each with the pod's name."""
        place = f"workflows/{self._access.namespace}/{quote(name, safe='')}/log"
        options = {"logOptions_container": "main", "logOptions_follow": str(follow).lower()}
        with self._explained(), self._get(place, stream=True, **options) as answer:
            for line in answer.iter_lines():
                if not line:
                    continue
                entry = json.loads(line)
                if "error" in entry:
                    raise CompoWorldError(f"the Argo server ended the log: {entry['error'].get('message', '')}")
                yield entry["result"].get("podName", ""), entry["result"].get("content", "")

    def stop(self, name: str, *, at_once: bool) -> None:
        """Stop a workflow: its exit handler still runs, unless it is to end at once."""
        with self._explained():
            if at_once:
                self._service.terminate_workflow(name, WorkflowTerminateRequest(name=name))
            else:
                self._service.stop_workflow(name, WorkflowStopRequest(name=name))

    def _get(self, place: str, *, stream: bool = False, **options: str) -> requests.Response:
        """Read what Hera's service would not read whole, or not line by line."""
        from hera.exceptions import exception_from_server_response

        service = self._service
        answer = service.session.request(
            "get",
            f"{service.host}api/v1/{place}",
            params={key.replace("_", "."): value for key, value in options.items()},
            headers={"Authorization": service.token} if service.token else {},
            verify=service.verify_ssl,
            stream=stream,
            timeout=(_PATIENCE_S, None if stream else _PATIENCE_S),  # pods may be silent for long
        )
        if not answer.ok:
            raise exception_from_server_response(answer)
        return answer

    @contextmanager
    def _explained(self) -> Iterator[None]:
        where = f"the Argo server {self._access.url}"
        try:
            yield
        except NotFound as error:
            raise InputError(f"{where} has no such thing in namespace {self._access.namespace}: {error}") from None
        except (InternalServerError, Unsupported) as error:
            raise TransientError(f"{where} cannot do this now: {error}") from None
        except HeraException as error:
            status = getattr(error, "status_code", 0)
            if status in (401, 403):
                hint = "set ARGO_TOKEN, or --token-file, for an account that may do this"
                raise InputError(f"{where} refuses: {error}; {hint}") from None
            if "status code 5" in str(error) or "status code 429" in str(error):
                raise TransientError(f"{where} cannot do this now: {error}") from None
            raise InputError(f"{where} refuses: {error}") from None
        except requests.exceptions.SSLError as error:
            raise InputError(f"{where} shows a certificate that is not trusted; say with --ca who signed it") from error
        except ValueError as error:  # requests' own JSON errors are also request errors
            raise CompoWorldError(f"{where} answers as no Argo server would; is it one?") from error
        except requests.exceptions.RequestException as error:
            raise TransientError(f"{where} gives no answer ({type(error).__name__}); look before you repeat") from error


def _name(created: Any) -> str:
    return str(created.metadata.name)
