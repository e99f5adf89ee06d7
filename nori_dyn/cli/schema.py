"""nori-dyn schema: the JSON schema of sensor configs, or of files of components."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    components: Annotated[bool, typer.Option("--components", help="Of files of components instead.")] = False,
) -> None:
    """Print the JSON schema of sensor configs, for editors.

    Example: nori-dyn schema > sensors.schema.json
    """
    from nori_dyn.descriptions.component_files import components_schema_json
    from nori_dyn.descriptions.sensor_configs import schema_json

    typer.echo(components_schema_json() if components else schema_json())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)
