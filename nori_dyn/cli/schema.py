"""nori-dyn schema: the JSON schema of sensor configs, of files of components, or of presets."""

from __future__ import annotations

from nori_dyn.cli.common import print_json


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
    from nori_dyn.components.config import config_model as of_components
    from nori_dyn.estimation.preset_data import PresetData
    from nori_dyn.measurements.sensor_set import config_model as of_sensors

    model = of_components() if components else PresetData if presets else of_sensors()
    print_json(model.model_json_schema(by_alias=True))
