"""Motion of joints from what is read of it: positions and velocities filtered, smoothed and differentiated."""
