"""Plans and compiled functions as users meet them: made or found in the cache, saved, loaded, run."""
