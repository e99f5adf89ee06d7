"""Motion of joints from readings of positions and velocities: filters, smoothers and differentiators."""
