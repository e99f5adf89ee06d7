"""Robots and their sensors as files describe them: URDF, MJCF, YAML of components and sensors; robots by name."""
