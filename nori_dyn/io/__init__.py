"""Files, read safely, and written whole or not at all; what YAML and XML files hold."""
