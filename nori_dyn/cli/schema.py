"""nori-dyn schema: the JSON schema of sensor configs, of files of components, or of presets."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    components: Annotated[bool, typer.Option("--components", help="Of files of components instead.")] = False,
    presets: Annotated[bool, typer.Option("--presets", help="Of presets of robots instead.")] = False,
) -> None:
    """Print the JSON schema of sensor configs, for editors.

    Example: nori-dyn schema > sensors.schema.json
    """
    from nori_dyn.descriptions.component_files import components_schema_json
    from nori_dyn.descriptions.sensor_configs import schema_json
    from nori_dyn.estimation.presets import presets_schema_json

    typer.echo(components_schema_json() if components else presets_schema_json() if presets else schema_json())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)
