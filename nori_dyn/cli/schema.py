"""nori-dyn schema: the JSON schema of sensor configs, of files of components, or of presets."""

from __future__ import annotations

import typer


def schema(
    components: bool = False,
    presets: bool = False,
) -> None:
    """Print the JSON schema of sensor configs, for editors.

    Example: nori-dyn schema > sensors.schema.json

    Args:
        components: Of files of components instead.
        presets: Of presets of robots instead.
    """
    from nori_dyn.descriptions.component_files import components_schema_json
    from nori_dyn.descriptions.sensor_configs import schema_json
    from nori_dyn.estimation.presets import presets_schema_json

    typer.echo(components_schema_json() if components else presets_schema_json() if presets else schema_json())
