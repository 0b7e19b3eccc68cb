"""`serve`: an Iceberg REST catalog over the lake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from tableformat.cli.options import parse_options
from tableformat.cli.session import Session
from tableformat.properties import SERVE_DELETE_FORMAT_DEFAULT

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

FreshnessOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="The greatest age of a served state while a newer one is converted, such as 0.5s."
    ),
]
DeleteFormatOption = Annotated[
    str,
    typer.Option(
        metavar="any|position-deletes",
        help="The row deletes that clients can read. With position-deletes, a table that needs deletion vectors is "
        "refused with the reason.",
    ),
]
ClientConfigOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A property that clients get, such as s3.endpoint. Repeatable."),
]
VendOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="How clients get credentials of S3 for one table, such as client.assume-role.arn=ARN. Repeatable.",
    ),
]
TlsCertificateOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="A PEM file with the certificate chain.")
]
TlsKeyOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="A PEM file with the private key.")
]


def serve(
    context: typer.Context,
    lake: Annotated[
        str | None,
        typer.Argument(metavar="[LAKE]", help="The catalog to serve, as in --catalog.", show_default=False),
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8181,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change by a client.")] = False,
    allow_jobs: Annotated[
        bool, typer.Option("--allow-jobs", help="Let people run maintenance jobs on the web page. Needs --token-file.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, readable=True, help="A file with the secret that clients have to send."
        ),
    ] = None,
    freshness: FreshnessOption = "1s",
    delete_format: DeleteFormatOption = SERVE_DELETE_FORMAT_DEFAULT,
    client_config: ClientConfigOption = None,
    vend_credentials: VendOption = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
) -> None:
    """Serve the catalog to other Iceberg engines, which then read every table as it is.

    Trino, Spark, DuckDB and PyIceberg connect to it as to any Iceberg REST catalog. While equality or range
    deletes are pending in a table, they get a conversion of its head, and their commits go on top of it. A browser
    displays the tables at the same address.

    Example: tableformat serve lake/ --token-file secret.txt
    """
    from tableformat.cli.quantities import parse_duration

    session = Session.of(context)
    _require_extra()
    from tableformat.server.options import ServeOptions
    from tableformat.server.running import Server

    if (tls_certificate is None) != (tls_key is None):
        raise typer.BadParameter("--tls-certificate and --tls-key are given together.")
    options = ServeOptions(
        read_only=read_only,
        token=None if token_file is None else token_file.read_text(encoding="utf-8"),
        allow_jobs=allow_jobs,
        freshness_seconds=parse_duration(freshness, "--freshness"),
        delete_format=delete_format,
        client_config=parse_options(client_config or [], hint="--client-config"),
        vend_credentials=parse_options(vend_credentials or [], hint="--vend-credentials"),
    )
    catalog = (session if lake is None else replace(session, catalog_name=lake)).catalog()
    tls = {} if tls_certificate is None else {"ssl_certfile": str(tls_certificate), "ssl_keyfile": str(tls_key)}
    if options.token is None and host not in _LOOPBACK:
        session.output.note(
            f"Everyone who reaches {host} can read and change the tables. --token-file requires a secret."
        )
    with Server(catalog, options, host, port, **tls) as server:
        name = catalog.iceberg.properties.get("warehouse", catalog.iceberg.name)
        session.output.note(f"Serving {name} at {server.url}. Ctrl-C ends it.")
        server.wait()


def _require_extra() -> None:
    from importlib.util import find_spec

    from tableformat.errors import UnsupportedFeatureError

    missing = [name for name in ("starlette", "uvicorn", "jinja2") if find_spec(name) is None]
    if missing:
        raise UnsupportedFeatureError(
            f"serve needs the packages {', '.join(missing)}. Run: pip install 'tableformat[serve]'"
        )
