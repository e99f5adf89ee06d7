"""nori-dyn schema: the JSON schema of sensor configs."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of sensor configs, for editors.

    Example: nori-dyn schema > sensors.schema.json
    """
    from nori_dyn.io.sensor_configs import schema_json

    typer.echo(schema_json())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)
